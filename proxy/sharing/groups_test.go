package sharing

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"

	"redlock-proxy/internal/redistest"
)

// talker connects to a server as a client of a group would.
type talker struct{ addr string }

func (u talker) ConnectAs(ctx context.Context, proto, db int) (net.Conn, error) {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", u.addr)
	if err != nil {
		return nil, err
	}
	begin := command("HELLO", fmt.Sprint(proto)) + command("SELECT", fmt.Sprint(db)) + command("ECHO", "ready")
	if _, err := c.Write([]byte(begin)); err != nil {
		return nil, err
	}
	got := ""
	for buf := make([]byte, 1); !strings.HasSuffix(got, "$5\r\nready\r\n"); got += string(buf) {
		if _, err := c.Read(buf); err != nil {
			return nil, err
		}
	}
	return c, nil
}

func (talker) Term() uint64 { return 0 }

func startGroups(t *testing.T, size int) (*Pool, *redistest.Server) {
	t.Helper()
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--databases", "100"}})
	p := New(size, Group{Proto: 2}, talker{server.Addr()}, nil, slog.New(slog.DiscardHandler))
	t.Cleanup(p.Close)
	return p, server
}

// in sends commands in a group, which there must be room for.
func (r *reader) in(g Group, commands string, n int) {
	r.Helper()
	if (r.lane.group == nil || r.lane.group.Group != g) && !r.lane.Enter(g) {
		r.Fatalf("no room for %v", g)
	}
	for !r.lane.Send([]byte(commands), n) {
		if err := r.lane.Open(r.Context(), g); err != nil {
			r.Fatal(err)
		}
	}
}

// Clients of several groups at once: each is answered in its protocol and from its database.
func TestGroupsAreApart(t *testing.T) {
	p, _ := startGroups(t, 2)
	var all sync.WaitGroup
	for who := range 48 {
		g := Group{Proto: 2 + who%2, DB: who % 3}
		r := newReader(t, p)
		all.Go(func() {
			for range 30 {
				r.in(g, command("SET", "db", fmt.Sprint(g.DB))+command("GET", "db")+command("GET", "none"), 3)
			}
			none := map[int]string{2: "$-1\r\n", 3: "_\r\n"}[g.Proto]
			want := strings.Repeat("+OK\r\n$1\r\n"+fmt.Sprint(g.DB)+"\r\n"+none, 30)
			if got := r.await(90); got != want {
				t.Errorf("%v: got %.200q", g, got)
			}
		})
	}
	all.Wait()
	uses := p.Uses()
	if len(uses) != 6 {
		t.Errorf("uses: %v", uses)
	}
	for _, use := range uses {
		if use.Clients != 8 || use.Connections > 2 || use.Connections < 1 {
			t.Errorf("%+v", use)
		}
	}
}

// There are only so many groups: where all are in use there is no room; one that nobody is in makes room, but for the base.
func TestGroupsAreBounded(t *testing.T) {
	p, _ := startGroups(t, 2)
	var all []*reader
	for db := 1; db < maxGroups; db++ {
		r := newReader(t, p)
		r.in(Group{2, db}, command("PING"), 1)
		r.await(1)
		all = append(all, r)
	}
	late := newReader(t, p)
	if late.lane.Enter(Group{2, 99}) {
		t.Fatal("there is one group more than there may be")
	}
	if late.lane.Open(t.Context(), Group{2, 99}) != errFull {
		t.Error("a lane was opened in a group that there is no room for")
	}
	base := newReader(t, p)
	base.in(Group{2, 0}, command("PING"), 1)
	base.await(1)
	base.lane.Leave()
	if late.lane.Enter(Group{2, 99}) {
		t.Fatal("the base was given up")
	}
	all[4].lane.Leave()
	before := p.Len()
	late.in(Group{2, 99}, command("SET", "x", "1"), 1)
	if got := late.await(1); got != "+OK\r\n" {
		t.Errorf("got %q", got)
	}
	redistest.Await(t, "one has come, one goes", func() bool { return p.Len() == before })
	for _, use := range p.Uses() {
		if use.DB == 5 {
			t.Errorf("%+v was given up", use)
		}
	}
}

// A group that is given up still answers what was sent, for those who have left.
func TestGroupThatIsGivenUpAnswers(t *testing.T) {
	p, server := startGroups(t, 1)
	var last *reader
	for db := 1; db < maxGroups; db++ {
		last = newReader(t, p)
		last.in(Group{2, db}, command("PING"), 1)
		last.await(1)
	}
	gone := last
	if err := server.Pause(); err != nil {
		t.Fatal(err)
	}
	gone.in(gone.lane.group.Group, strings.Repeat(command("INCR", "n"), 1000), 1000)
	gone.lane.Leave()
	if !newReader(t, p).lane.Enter(Group{2, 50}) {
		t.Fatal("the group was not given up")
	}
	if err := server.Continue(); err != nil {
		t.Fatal(err)
	}
	if gone.await(1001); gone.lost > 0 {
		t.Errorf("%d replies were lost: %v", gone.lost, gone.cause)
	}
}
