package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/location"
)

const (
	// recordPause is the wait between two reads of the record of the locks' location. recordTime is
	// the time limit for one access.
	recordPause, recordTime = 2 * time.Second, 2 * time.Second
	// recordTick is the wait between two comparisons of the record with the masters.
	recordTick = 100 * time.Millisecond
)

// keepRecord compares the upstream's record of the locks' location with the masters' report, and
// updates the record.
func (c *Cluster) keepRecord(ctx context.Context) {
	var has location.At
	var since, read time.Time
	var err error
	for ended := false; !ended; ended = c.stoppedDuring(recordTick) {
		if time.Since(read) >= recordPause {
			had := has
			if has, err = c.readRecord(ctx); err == nil && (since.IsZero() || has != had) {
				since = time.Now()
			}
			read = time.Now()
		}
		guards := c.masterSet().guards
		guards.Compare(has, since, err)
		era, known := guards.Era()
		if at := era.At(); err == nil && known && at.Place != location.Undecided && !at.Moves() && at.Era > has.Era {
			if err = c.writeRecord(ctx, at); err == nil {
				has, since = at, time.Now()
			}
		}
	}
}

func (c *Cluster) readRecord(ctx context.Context) (location.At, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	return c.opts.Record.Read(ctx)
}

func (c *Cluster) writeRecord(ctx context.Context, at location.At) error {
	ctx, cancel := context.WithTimeout(ctx, recordTime)
	defer cancel()
	err := c.opts.Record.Write(ctx, at)
	if err != nil {
		c.log.Debug("could not record the location of the locks at the upstream", "cause", err)
	}
	return err
}
