package acl

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/redistest"
)

// aclServer holds a redis-server with an ACL file.
type aclServer struct {
	t      testing.TB
	path   string
	client *redistest.Client
}

func startACLServer(t testing.TB) *aclServer {
	path := filepath.Join(t.TempDir(), "users.acl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server := redistest.New(t, redistest.Options{ExtraArgs: []string{"--aclfile", path}})
	client, err := redistest.Dial(server.Addr(), 10*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return &aclServer{t, path, client}
}

func (r *aclServer) do(words ...string) string {
	reply, err := r.client.Do(words...)
	if err != nil {
		r.t.Fatal(err)
	}
	return fmt.Sprint(reply)
}

// load makes Redis read a file with this text, and returns the error of Redis, or an empty string.
func (r *aclServer) load(text string) string {
	if err := os.WriteFile(r.path, []byte(text), 0o600); err != nil {
		r.t.Fatal(err)
	}
	reply := r.do("ACL", "LOAD")
	if reply == "OK" {
		return ""
	}
	reply, _, _ = strings.Cut(strings.TrimPrefix(reply, "ERR "), "WARNING: ACL errors detected")
	return strings.TrimSpace(reply)
}

// TestFilesLikeRedis checks that Redis accepts the same files as Parse, with the same
// errors, and gives them the same meaning.
func TestFilesLikeRedis(t *testing.T) {
	r := startACLServer(t)
	for _, text := range []string{
		"", "\n\n  \n", "# a comment\n", "user\n", "user \n", "users a on\n", "USER a on\n", " user a on \r\n",
		"user a\n", "user a\ton\n", "user a on\t +get\n",
		"user a on\nuser b off\nuser a off\n", "user a on +nosuch\nfoo\nuser b bar +@nope ~* ~x\n",
		"user a on #zz <x\n",
		"user a +get|x +select|0 +GET|Y\n", "user a +config|get|x\n", "user a -select|0\n", "user a +config|\n",
		"user a +config|get|\n", "user a -config|nosuch\n",
		"user a +config|GET -Config|Set +CONFIG\n", "user a +get| \n", "user a +select|0|1\n", "user a + - |\n",
		"user a +|get\n", "user a +@\n", "user a -@nope\n",
		"user a ~* ~x\n", "user a %R~* ~x\n", "user a &* &x\n", "user a ~x ~*\n", "user a %~x\n",
		"user a %R~x %W~y %RW~z %wr~q %RR~x\n", "user a %R %RW %\n", "user a ~ &\n",
		"user a (~x +get) (~y (+set)\n", "user a (~x +get) ( ~y  +set ) clearselectors (+ping)\n",
		"user a (~x +get\n", "user a () ( ) )\n", "user a (on)\n", "user a (>x)\n", "user a (reset)\n",
		"user a ((+get))\n", "user a (~* ~x)\n", "user a (+nosuch)\n", "user a on \"x y\"\n",
		"user a on nopass >x reset sanitize-payload skip-sanitize-payload\n",
		"user a ON NoPass AllKeys AllChannels AllCommands\n", "user a on >x <x !x\n", "user a on >x <y\n",
		"user a >\n", "user a nopass >x nopass\n",
		"user a +@all -@all +@read -@write +@Fast\n", "user a +acl|whoami -acl +client|list|x\n",
		"user a resetkeys resetchannels resetpass nocommands off\n",
		"user a clearselectors foo\n", "user é on\n", "user a ~é*\n",
	} {
		set, err := Parse(r.path, text, catalog())
		want, got := r.load(text), ""
		if err != nil {
			got = err.Error()
		}
		want = strings.ReplaceAll(want, "definition.", "definition. ")
		if strings.Join(strings.Fields(got), " ") != strings.Join(strings.Fields(want), " ") {
			t.Errorf("%q:\ngot  %s\nwant %s", text, got, want)
			continue
		}
		if got != "" {
			continue
		}
		// Redis writes rules differently. It therefore reads the rules that Describe returns, and
		// the test compares the two users in Redis.
		for _, u := range set.All() {
			want := r.do("ACL", "GETUSER", u.Name)
			parts := append([]string{"ACL", "SETUSER", "copy", "reset"}, rulesOf(u)...)
			if reply := r.do(parts...); reply != "OK" {
				t.Errorf("%q: Redis does not take %q: %s", text, u.Describe(), reply)
			} else if got := r.do("ACL", "GETUSER", "copy"); strings.ReplaceAll(got, "sanitize-payload",
				"") != strings.ReplaceAll(want, "sanitize-payload", "") && !equalExceptSpaces(got, want) {
				t.Errorf("%q:\n%q is in Redis\n%s\nbut what we read was\n%s", text, u.Describe(), got, want)
			}
			r.do("ACL", "DELUSER", "copy")
		}
	}
}

// rulesOf returns the rules of a user as arguments of ACL SETUSER.
func rulesOf(u *User) []string {
	ops, _ := joinSelectors(strings.Fields(u.Describe())[2:])
	return ops
}

func equalExceptSpaces(a, b string) bool {
	clean := strings.NewReplacer("skip-sanitize-payload", "", "sanitize-payload", "", " ", "")
	return clean.Replace(a) == clean.Replace(b)
}

// The parts of random users, and the commands that these users send.
var (
	ruleSamples = strings.Fields(`
		+@all -@all +@read -@read +@write -@write +@string -@hash +@dangerous -@dangerous +@admin -@admin +@fast -@slow +@keyspace +@pubsub +@scripting +@connection
		+get -get +set -set +mget +del -del +config -config +config|get -config|set +select|0 +select|1 -select +object -object|freq +client|list +eval -eval +sort
		+publish +subscribe +psubscribe -publish +memory|usage +xgroup|create +copy +rename +zunionstore +bitfield +georadius +xread +debug|object +acl|whoami
		~* ~k1 ~k2 ~k* ~b* %R~k1 %W~k1 %RW~k2 %R~* %W~* ~k[1-3] ~k? ~other allkeys resetkeys resetkeys
		&* &c1 &c* &k* resetchannels resetchannels
		allcommands nocommands`)
	selectorSamples = []string{"(+get ~k2)", "(+@all ~b*)", "(%R~k1 +@read)", "(&c1 +publish +subscribe)", "(~* +set)",
		"(+config|set +select|3)", "clearselectors"}
	commandSamples = strings.Split(strings.TrimSpace(`
get k1|get k2|get b1|mget k1 k2|mget k1 b1|set k1 v|set k1 v get|set k2 v px 10|del k1|del k1 k2|exists k1|exists other|type b1|strlen k1
copy k1 k2|rename k1 b1|zunionstore k1 2 k2 k3|zunionstore b1 2 k1 k2|zunion 2 k1 k2|bitfield k1 get u8 0|bitfield k1 set u8 0 1|bitop and b1 k1 k2
georadius k1 1 2 3 m|georadius k1 1 2 3 m store k2|sort k1|sort k1 store b1|xread streams k1 0|xread count 1 streams k1 k2 0 0|xgroup create k1 g 0|xinfo stream k1
eval s 0|eval s 1 k1 x|eval s 2 k1 b1 x|evalsha s 1 k2|fcall f 1 k1|fcall_ro f 1 k1|memory usage k1|object freq k1|object help|hset k1 f v|hget k1 f|blpop k1 k2 0
select 0|select 1|select 3|config get x|config set x y|config rewrite|client list|client id|acl whoami|acl list|info|ping|echo x|dbsize|flushall|keys *|scan 0|wait 0 0
publish c1 x|publish k1 x|spublish c1 x|subscribe c1|subscribe c1 c2|subscribe c1 x|psubscribe c*|psubscribe c1|psubscribe *|unsubscribe x|ssubscribe c1|pubsub channels
multi|exec|discard|watch k1|watch other|unwatch|auth x|hello 3|reset|quit|script load x|script flush|function list|time|command count|monitor|replicaof a b|migrate h 1 k1 0 1
lmove k1 k2 left left|smove k1 b1 m|pfmerge k1 k2|pfcount k1 k2|msetnx k1 v k2 v|append k1 v|getdel k1|lpush k1 v|spop k1|zadd k1 1 m|zrange k1 0 1|dump k1|restore k1 0 x|touch k1`), "|")
)

// TestRandomUsersLikeRedis checks that, for random rules, Redis allows the same commands as Check,
// and refuses all other commands with the same error.
func TestRandomUsersLikeRedis(t *testing.T) {
	r, random, cat := startACLServer(t), rand.New(rand.NewPCG(1, 2)), catalog()
	var all []string
	for _, line := range commandSamples {
		all = append(all, strings.Split(line, "\n")...)
	}
	users, allowed, refused := redistest.SampleCount(400), 0, 0
	for range users {
		ops := []string{"on"}
		for range 1 + random.IntN(8) {
			if random.IntN(8) == 0 {
				ops = append(ops, selectorSamples[random.IntN(len(selectorSamples))])
			} else {
				ops = append(ops, ruleSamples[random.IntN(len(ruleSamples))])
			}
		}
		set, err := Parse("f", "user ann "+strings.Join(ops, " "), cat)
		reply := r.do(append([]string{"ACL", "SETUSER", "ann", "reset"}, ops...)...)
		if (err == nil) != (reply == "OK") {
			t.Fatalf("%q: %v, in Redis %s", ops, err, reply)
		}
		if err != nil {
			continue
		}
		for _, line := range all {
			words := strings.Fields(line)
			want := r.do(append([]string{"ACL", "DRYRUN", "ann"}, words...)...)
			got := set.Find("ann").Check(syntax.Bytes(words)).Describe()
			if got == "" {
				got = "OK"
			}
			if got != want {
				t.Fatalf("%q: %q: %s, in Redis %s", ops, line, got, want)
			}
			if got == "OK" {
				allowed++
			} else {
				refused++
			}
		}
	}
	if minimum := 12 * users; allowed < minimum || refused < minimum {
		t.Errorf("%d allowed and %d refused: too few of one kind to tell", allowed, refused)
	}
	t.Logf("%d allowed, %d refused", allowed, refused)
}

// FuzzParse checks that nothing panics, and that a user's description parses to an equal user.
func FuzzParse(f *testing.F) {
	for _, text := range []string{"user a on >x ~k +get", "user a (~x +get) ( +set", "user default off",
		"user a %R~x &c +config|get -@all +select|0"} {
		f.Add(text, "GET k")
	}
	cat := catalog()
	f.Fuzz(func(t *testing.T, text, line string) {
		set, err := Parse("f", text, cat)
		if err != nil {
			return
		}
		words := syntax.Bytes(strings.Fields(line))
		for _, u := range set.All() {
			reparsed, err := Parse("f", u.Describe(), cat)
			if err != nil {
				t.Fatalf("%q: %v", u.Describe(), err)
			}
			if len(words) == 0 {
				continue
			}
			one, two := u.Check(words).Error(), reparsed.Find(u.Name).Check(words).Error()
			if one != two {
				t.Fatalf("%q: %q, but %q by %q", line, one, two, u.Describe())
			}
			if begin := u.CheckPrefix(words, len(words)+1); begin.Cause == NoCause && one != "" {
				t.Fatalf("%q: its beginning is allowed, and it is not: %s", line, one)
			}
			u.DeniedReason(words)
			u.MayRead(line)
		}
	})
}
