package keygroup

import (
	"encoding/binary"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"redlock-proxy/quorum/register"
)

// Unlimited is the number of slots of a shared lock, which any number of clients may hold.
const Unlimited = -1

// SlotsError means that a client requested a lock with a different number of slots than its
// holders.
type SlotsError struct {
	// Held and Requested are numbers of slots, or Unlimited.
	Held, Requested int
}

// Error returns a sentence with both numbers.
func (e *SlotsError) Error() string {
	return fmt.Sprintf("the lock is held with %s, and this command requests %s; use the same for all clients of a lock",
		slotsText(e.Held), slotsText(e.Requested))
}

// slotsText returns the words of LOCK for a number of slots.
func slotsText(slots int) string {
	if slots == Unlimited {
		return "SHARED"
	}
	return "SLOTS " + strconv.Itoa(slots)
}

// Holders keeps the holders of one lock in the value of its key. It stores them as members of a
// keygroup. The name of a member contains the token, and its value is the number of slots. A holder
// that is alone and new is stored without expiry, and expires with the key, as an exclusive lock
// does.
//
// Holders also keeps the writers: clients that wait for an exclusive lock of the key. While a
// writer waits, no client joins the holders.
type Holders struct {
	*Group
	// exclusive is set if the key holds a value that does not consist of holders.
	exclusive bool
	// slots is the number of slots, or 0 without holders. holderCount and writerCount count the
	// members of each kind, and size is an upper bound of their encoded bytes.
	slots, holderCount, writerCount, size int
}

// holdersFormat is the format of holders.
var holdersFormat = &format{
	prefix:    holdersPrefix,
	isOwn:     func(_ *Group, name string) bool { return name[:1] == holderMember },
	encodeOwn: encodeLone,
}

// The name of a member is the token of a holder, or the ID of a writer, after one of these letters.
const (
	holderMember = "h"
	writerMember = "w"
)

// IsHolders reports whether a value consists of holders of a lock.
func IsHolders(text string) bool {
	return strings.HasPrefix(text, holdersPrefix) || strings.HasPrefix(text, lonePrefix)
}

// LoneHolder returns the value of a key that only a client with this token holds.
func LoneHolder(token string, slots int) string {
	return encodeLone(member{name: holderMember + token, value: strconv.Itoa(slots)})
}

func encodeLone(m member) string {
	slots, _ := strconv.Atoi(m.value)
	b := binary.AppendVarint([]byte(lonePrefix), int64(slots))
	return string(b) + m.name[len(holderMember):]
}

// decodeLone returns the token and the slots of a value that encodeLone made.
func decodeLone(text string) (token, slots string, ok bool) {
	text = text[len(lonePrefix):]
	n, size := binary.Varint([]byte(text[:min(len(text), binary.MaxVarintLen64)]))
	if size <= 0 || !isSlots(n) {
		return "", "", false
	}
	token, slots = text[size:], strconv.FormatInt(n, 10)
	return token, slots, encodeLone(member{name: holderMember + token, value: slots}) == lonePrefix+text
}

func isSlots(n int64) bool { return n >= 1 && n <= 1<<31 || n == Unlimited }

// OpenHolders decodes the value of a key, and omits the holders that have expired.
//
// Errors: ErrUnreadable; register.ErrTTLUnknown if the remaining time of a value with expiries is
// unknown.
func OpenHolders(l register.Snapshot) (*Holders, error) {
	h := &Holders{Group: &Group{format: holdersFormat, snapshot: l, keys: map[string]key{}}}
	switch {
	case !l.Present:
		return h, nil
	case l.Foreign || !IsHolders(l.Value):
		h.exclusive = true
		return h, nil
	case strings.HasPrefix(l.Value, lonePrefix):
		token, slots, ok := decodeLone(l.Value)
		if !ok {
			return nil, ErrUnreadable
		}
		h.putOwn(holderMember+token, slots)
		return h, h.countMembers()
	}
	if err := h.decodeMembers(); err != nil {
		return nil, err
	}
	return h, h.countMembers()
}

// countMembers counts the members of each kind. It returns ErrUnreadable if this version does not
// know the kind of a member.
func (h *Holders) countMembers() error {
	for name, k := range h.keys {
		h.size += sizeOf(name)
		if strings.HasPrefix(name, writerMember) {
			h.writerCount++
			continue
		}
		n, err := strconv.ParseInt(k.value, 10, 64)
		if !strings.HasPrefix(name, holderMember) || err != nil || !isSlots(n) {
			return ErrUnreadable
		}
		h.holderCount++
		h.slots = int(n)
	}
	return nil
}

// sizeOf returns an upper bound of the encoded bytes of a member: its name, the slots, the version,
// the expiry offset, and the lengths of these fields.
func sizeOf(name string) int { return len(name) + 80 }

// Tokens returns the tokens of the holders, sorted.
func (h *Holders) Tokens() []string { return h.withPrefix(holderMember) }

// Writers returns the IDs of the waiting writers, sorted.
func (h *Holders) Writers() []string { return h.withPrefix(writerMember) }

func (h *Holders) withPrefix(letter string) (all []string) {
	for _, name := range h.Names() {
		if rest, ok := strings.CutPrefix(name, letter); ok {
			all = append(all, rest)
		}
	}
	return all
}

// Slots returns the number of slots, Unlimited, or 0 if there is no holder.
func (h *Holders) Slots() int { return h.slots }

// Holder returns the state of the holder with a token.
func (h *Holders) Holder(token string) register.Snapshot { return h.Snapshot(holderMember + token) }

// Whole returns the state of the lock: it is present while it has holders, and its remaining time
// is that of the holder that expires last.
func (h *Holders) Whole() register.Snapshot {
	if h.exclusive {
		return h.snapshot
	}
	var last register.Snapshot
	for _, token := range h.Tokens() {
		if l := h.Holder(token); !last.Present || register.CompareTimeLeft(l.TimeLeft, last.TimeLeft) > 0 {
			last = l
		}
	}
	if !last.Present {
		return register.Snapshot{Shared: h.snapshot.Shared}
	}
	whole := h.snapshot
	whole.TimeLeft, whole.LongestTimeLeft, whole.ShortestTimeLeft = last.TimeLeft, last.LongestTimeLeft, last.ShortestTimeLeft
	return whole
}

// UntilFree returns the time until a client can get the lock if no other client changes it. The
// client requests this number of slots, or 0 for an exclusive lock. The result is 0 if the lock is
// available now, and NoExpiry if it never becomes available.
func (h *Holders) UntilFree(slots int) time.Duration {
	if h.exclusive {
		return h.snapshot.TimeLeft
	}
	tokens := h.Tokens()
	if slots > 0 && len(tokens) >= slots {
		return h.nthExpiry(tokens, len(tokens)-slots)
	}
	if slots == 0 && len(tokens) > 0 {
		return h.nthExpiry(tokens, len(tokens)-1)
	}
	longest := time.Duration(0)
	if slots != 0 {
		for _, id := range h.Writers() {
			longest = longerTime(longest, h.Snapshot(writerMember+id).TimeLeft)
		}
	}
	return longest
}

// nthExpiry returns the time after which n+1 of the holders have expired.
func (h *Holders) nthExpiry(tokens []string, n int) time.Duration {
	lefts := make([]time.Duration, len(tokens))
	for i, token := range tokens {
		lefts[i] = h.Holder(token).TimeLeft
	}
	slices.SortFunc(lefts, register.CompareTimeLeft)
	return lefts[n]
}

// Join adds a holder with a remaining time of ttl, in whole milliseconds, or NoExpiry.
//
// Errors: register.ErrHeld; *SlotsError if the holders have a different number of slots;
// ErrHoldersTooLarge.
func (h *Holders) Join(token string, slots int, ttl time.Duration) error {
	name := holderMember + token
	switch {
	case h.exclusive:
		return register.ErrHeld
	case h.slots != 0 && h.slots != slots:
		return &SlotsError{Held: h.slots, Requested: slots}
	case h.has(name), h.writerCount > 0, slots > 0 && h.holderCount >= slots:
		return register.ErrHeld
	case h.size+sizeOf(name) > MaxBytes:
		return ErrHoldersTooLarge
	}
	h.Put(name, strconv.Itoa(slots), ttl)
	h.slots = slots
	h.holderCount++
	h.size += sizeOf(name)
	return nil
}

func (h *Holders) has(name string) bool {
	_, exists := h.keys[name]
	return exists
}

// Leave removes a holder, or returns register.ErrNotHeld as *register.RefusedError.
func (h *Holders) Leave(token string) error {
	name := holderMember + token
	if !h.has(name) {
		return h.notHeld()
	}
	h.Remove(name)
	h.size -= sizeOf(name)
	if h.holderCount--; h.holderCount == 0 {
		h.slots = 0
	}
	return nil
}

// notHeld returns the error for a token that is not the token of a holder, with the value of the
// key: the token may hold the key exclusively.
func (h *Holders) notHeld() error {
	return &register.RefusedError{Err: register.ErrNotHeld, CurrentSnapshot: h.Whole()}
}

// Extend gives a holder a remaining time of ttl, unless its present remaining time is longer, and
// returns the longer time, or register.ErrNotHeld as *register.RefusedError. For a holder that is
// stored without expiry, the longest time that a master reported counts: it may be that of a granted
// EXTEND that some masters missed. The holder gets a new version: the removal of its former version
// may be pending.
func (h *Holders) Extend(token string, ttl time.Duration) (left time.Duration, err error) {
	l := h.Holder(token)
	switch {
	case !l.Present:
		return 0, h.notHeld()
	case l.TimeLeftUnknown:
		return 0, register.ErrTTLUnknown
	case !h.isGroup:
		ttl = longerTime(l.LongestTimeLeft, ttl)
	case register.CompareTimeLeft(l.TimeLeft, ttl) >= 0:
		h.Replace(holderMember+token, strconv.Itoa(h.Slots()))
		return l.TimeLeft, nil
	}
	h.Put(holderMember+token, strconv.Itoa(h.Slots()), ttl)
	return ttl, nil
}

// longerTime returns the longer of two remaining times.
func longerTime(a, b time.Duration) time.Duration {
	if register.CompareTimeLeft(a, b) >= 0 {
		return a
	}
	return b
}

// AddWriter records that a writer waits for the lock. The record expires after ttl. AddWriter
// changes nothing if the lock has no holders.
func (h *Holders) AddWriter(id string, ttl time.Duration) {
	if h.holderCount == 0 {
		return
	}
	if name := writerMember + id; !h.has(name) {
		h.writerCount++
		h.size += sizeOf(name)
	}
	h.Put(writerMember+id, "", ttl)
}

// RemoveWriter removes a waiting writer.
func (h *Holders) RemoveWriter(id string) {
	if name := writerMember + id; h.has(name) {
		h.Remove(name)
		h.writerCount--
		h.size -= sizeOf(name)
	}
}

// FreeSlots returns the number of waiting clients that may get the lock now, or Unlimited. A
// waiting writer keeps all other clients out. Without holders and writers the result is Unlimited,
// because the next client determines the number of slots.
func (h *Holders) FreeSlots() int {
	switch {
	case h.exclusive, h.writerCount > 0 && h.holderCount > 0:
		return 0
	case h.writerCount > 0:
		return 1
	case h.holderCount == 0, h.slots == Unlimited:
		return Unlimited
	default:
		return h.slots - h.holderCount
	}
}

// ErrHoldersTooLarge means that the holders of a lock exceed MaxBytes.
var ErrHoldersTooLarge = fmt.Errorf(
	"too many holders: the tokens of one lock may have at most %d bytes together; use shorter tokens", MaxBytes)
