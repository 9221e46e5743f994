package quorum

import (
	"context"
	"time"

	"redlock-proxy/quorum/location"
)

const (
	// recordPause is the wait between two reads of the record of the locks' location. recordTimeout
	// is the time limit for one read or write.
	recordPause, recordTimeout = 2 * time.Second, 2 * time.Second
	// recordTick is the wait between two comparisons of the record with the masters.
	recordTick = 100 * time.Millisecond
)

// keepRecord compares the upstream's record of the locks' location with the masters' report, and
// updates the record.
func (c *Cluster) keepRecord(ctx context.Context) {
	var record location.EraPlace
	var recordedAt, lastRead time.Time
	var err error
	for stopped := false; !stopped; stopped = c.stoppedDuring(recordTick) {
		if time.Since(lastRead) >= recordPause {
			previous := record
			if record, err = c.readRecord(ctx); err == nil && (recordedAt.IsZero() || record != previous) {
				recordedAt = time.Now()
			}
			lastRead = time.Now()
		}
		guards := c.masterSet().guards
		guards.CompareRecord(record, recordedAt, err)
		era, known := guards.Era()
		if at := era.Location(); err == nil && known && at.Place != location.Undecided && !at.Moves() && at.Era > record.Era {
			if err = c.writeRecord(ctx, at); err == nil {
				record, recordedAt = at, time.Now()
			}
		}
	}
}

func (c *Cluster) readRecord(ctx context.Context) (location.EraPlace, error) {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	return c.opts.Record.Read(ctx)
}

func (c *Cluster) writeRecord(ctx context.Context, place location.EraPlace) error {
	ctx, cancel := context.WithTimeout(ctx, recordTimeout)
	defer cancel()
	err := c.opts.Record.Write(ctx, place)
	if err != nil {
		c.log.Debug("could not record the location of the locks at the upstream", "cause", err)
	}
	return err
}
