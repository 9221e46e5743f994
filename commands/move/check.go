package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum"
	"redlock-proxy/quorum/location"
)

// lockBytes is the approximate size of a lock without its name and value, in bytes.
const lockBytes = 256

// checkStores examines both stores for obstacles to a move. It changes nothing.
func (r *run) checkStores(ctx context.Context) error {
	if err := r.opts.Masters.CheckMove(); err != nil {
		return err
	}
	if err := r.checkUpstream(ctx); err != nil {
		return err
	}
	source, target := r.stores()
	checked := []store{target}
	if r.at.Source() == location.Upstream { // the move removes the locks from the upstream
		checked = append(checked, source)
	}
	start := time.Now()
	names, err := source.list(ctx)
	if err != nil {
		return err
	}
	size := int64(0)
	for part := range partsByDatabase(names) {
		locks, err := source.read(ctx, part)
		// Clients still run commands, so a key may be contended.
		if err != nil && !errors.Is(err, quorum.ErrContended) {
			return err
		}
		for _, l := range locks {
			size += int64(len(l.key)+len(l.value)) + lockBytes
		}
		for _, s := range checked {
			if err := s.checkWrites(ctx, locks); err != nil {
				return err
			}
		}
	}
	if err := target.checkRoom(ctx, size); err != nil {
		return fmt.Errorf("no room for %s of about %d bytes: %w", syntax.Count(len(names), "lock key"), size, err)
	}
	duration := r.eraDelay + time.Since(start)
	if duration > r.copyTimeout {
		return fmt.Errorf("moving %s would take too long: about %v, the limit is %v",
			syntax.Count(len(names), "lock key"), duration.Round(time.Millisecond), r.copyTimeout)
	}
	duration = duration.Round(10 * time.Millisecond)
	r.logStep("checked %s: moving them takes about %v", syntax.Count(len(names), "lock key"), duration)
	return nil
}

// checkUpstream checks whether locks can be moved to or from the upstream. It records the ID of the
// connection, and the run_id, the free memory and the number of replicas of the server.
func (r *run) checkUpstream(ctx context.Context) error {
	replies, err := ask(ctx, r.conn, []string{"INFO"}, []string{"CLIENT", "ID"}, []string{"CLIENT", "LIST"},
		[]string{"CLIENT", "KILL", "ID", absentClientID}) // checks the permission for CLIENT KILL
	if err != nil {
		return err
	}
	text, _ := replies[0].(string)
	info := redisinfo.Parse(text)
	id, _ := replies[1].(int64)
	r.connID, r.upstreamRunID, r.room = strconv.FormatInt(id, 10), info["run_id"], info.FreeMemory()
	r.upstreamReplicas = replicaCount(info)
	switch mode := cmp.Or(info["redis_mode"], info["server_mode"]); {
	case info["role"] != "master":
		return fmt.Errorf("the upstream is not a master but a %q", info["role"])
	case mode == "cluster" || mode == "sentinel":
		return fmt.Errorf("the upstream is not standalone (mode %s): "+
			"locks can be moved only from or to a standalone Redis", mode)
	case info["loading"] == "1":
		return errors.New("the upstream is loading its data")
	case id == 0:
		return errors.New("the upstream does not support CLIENT ID, which a move needs")
	}
	// This checks the permission to write the record, and that the key has no other use.
	_, err = ask(ctx, r.conn, []string{"MULTI"}, []string{"HSETNX", location.RecordKey, "", ""}, []string{"DISCARD"},
		[]string{"SELECT", "0"}, []string{"HGETALL", location.RecordKey})
	return err
}

// checkSameUpstream returns an error unless the server of checkUpstream is still the upstream (see
// "Premises" in package location). When a Sentinel promotes a replica, that replica first leaves its
// master. The Sentinels report the new master up to a second later.
func (r *run) checkSameUpstream(ctx context.Context) error {
	replies, err := ask(ctx, r.conn, []string{"INFO"})
	if err != nil {
		return err
	}
	text, _ := replies[0].(string)
	switch info := redisinfo.Parse(text); {
	case info["run_id"] != r.upstreamRunID:
		return errors.New("the upstream restarted during the move")
	case info["role"] != "master":
		return fmt.Errorf("the upstream became a %q during the move", info["role"])
	case replicaCount(info) < r.upstreamReplicas:
		return errors.New("a replica of the upstream left during the move: it may be the new master")
	}
	if err := r.conn.CheckCurrent(ctx); err != nil {
		return fmt.Errorf("the upstream may have become another server during the move: %w", err)
	}
	return nil
}

// replicaCount returns the number of connected replicas.
func replicaCount(info redisinfo.Fields) int {
	n, _ := strconv.Atoi(info["connected_slaves"])
	return n
}
