package move

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"

	"redlock-proxy/internal/redisinfo"
	"redlock-proxy/quorum/location"
)

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
	// This checks the permission to write the record.
	_, err = ask(ctx, r.conn, []string{"MULTI"}, []string{"HSETNX", location.RecordKey, "", ""}, []string{"DISCARD"})
	return err
}

// checkSameUpstream returns an error unless the server of checkUpstream is still the upstream, and
// a master. When a Sentinel promotes a replica, that replica first leaves its master. The Sentinels
// report the new master up to a second later, so a missing replica counts as a failover.
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
