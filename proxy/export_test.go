package proxy

import "time"

// SetPatience shortens how long a subscriber may leave what it gets unread, and how
// long a client that sends no more is waited for.
func (u *Upstream) SetPatience(stall, farewell time.Duration) { u.stall, u.farewell = stall, farewell }
