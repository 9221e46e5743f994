package conf

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sampleValues has three valid values for each setting: for the file, the environment and the flag.
// Each value differs from the previous one.
var sampleValues = map[string][3][]string{
	"master":               {{"redis://file:1"}, {"redis://env:1", "redis://env:2"}, {"redis://flag:1", "redis://flag:2"}},
	"listen":               {{"127.0.0.1:1"}, {"127.0.0.1:2"}, {"[::1]:0"}},
	"cluster-ports":        {{"7001-7009"}, {"1-65535"}, {"6401-6401"}},
	"announce":             {{"proxy-1"}, {"10.0.0.1"}, {"::1"}},
	"max-ttl":              {{"1h"}, {"2h"}, {"3h"}},
	"master-timeout":       {{"1ms"}, {"2ms"}, {"3ms"}},
	"key-prefix":           {{"file:"}, {"env:"}, {"flag, and more:"}},
	"proxy-protocol":       {{"10.0.0.1"}, {"10.0.0.0/8", "::1"}, {}},
	"lock-keys":            {{"lock:*"}, {"env:*", "env-?"}, {}},
	"lock-tags":            {{"lock:*"}, {"*{env:*", "env-?"}, {}},
	"lock-class":           {{"a=lock:*"}, {"b=env:*", "c=env=?"}, {}},
	"move-from-upstream":   {{"true"}, {"false"}, {"true"}},
	"cluster-mode":         {{"emulated"}, {"off"}, {"emulated"}},
	"locks-without-ttl":    {{"refuse"}, {"allow"}, {"refuse"}},
	"admin":                {{"127.0.0.1:9380"}, {":0"}, {""}},
	"admin-hosts":          {{"a.example"}, {"b.example", "c.example"}, {}},
	"admin-pprof":          {{"true"}, {"false"}, {"true"}},
	"admin-locks":          {{"true"}, {"false"}, {"true"}},
	"max-clients":          {{"1"}, {"2"}, {"3"}},
	"guard":                {{"false"}, {"true"}, {"false"}},
	"fresh-start":          {{"true"}, {"false"}, {"true"}},
	"upstream":             {{"redis://u"}, {"redis://:hunter2@v:1/2"}, {"unix:///w"}},
	"upstream-timeout":     {{"1s"}, {"2s"}, {"3s"}},
	"ca":                   {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"client-cert":          {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"client-key":           {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"tls-cert":             {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"tls-key":              {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"tls-client-ca":        {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"protected-mode":       {{"false"}, {"true"}, {"false"}},
	"client-password-file": {{"/run/a"}, {"/run/b"}, {"/run/c"}},
	"acl-file":             {{"/run/a.acl"}, {"/run/b.acl"}, {"/run/c.acl"}},
	"share-upstream-login": {{"true"}, {"true"}, {"true"}},
	"drain-timeout":        {{"1s"}, {"2s"}, {"0s"}},
	"max-input-memory":     {{"4mb"}, {"2gb"}, {"9999kb"}},
	"max-unread-memory":    {{"4mb"}, {"2gb"}, {"9999999"}},
	"max-message-memory":   {{"4mb"}, {"2gb"}, {"5mb"}},
	"drain-delay":          {{"1s"}, {"2s"}, {"5s"}},
	"audit-log":            {{"true"}, {"false"}, {"true"}},
	"log-level":            {{"debug"}, {"warn"}, {"error"}},
	"log-format":           {{"json"}, {"text"}, {"json"}},
}

// writeFile writes a configuration file and returns its path.
func writeFile(t *testing.T, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "conf.yaml")
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// yamlLine returns the setting as a line of a file.
func yamlLine(s Setting, values []string) string {
	switch {
	case s.IsList:
		return fmt.Sprintf("%s: [%s]\n", s.Name, strings.Join(values, ", "))
	case s.isYAMLString:
		return fmt.Sprintf("%s: %q\n", s.Name, values[0])
	}
	return fmt.Sprintf("%s: %s\n", s.Name, values[0])
}

// TestPrecedence sets every setting in every combination of the three sources.
func TestPrecedence(t *testing.T) {
	for _, s := range Settings() {
		values, ok := sampleValues[s.Name]
		if !ok {
			t.Errorf("%s has no samples: add them", s.Name)
			continue
		}
		for sources := range 8 {
			t.Run(fmt.Sprintf("%s/%03b", s.Name, sources), func(t *testing.T) {
				want := s.get(Default())
				src := Source{Flags: map[string][]string{}}
				if sources&1 != 0 {
					want = values[0]
					src.File = writeFile(t, yamlLine(s, want))
				}
				if sources&2 != 0 {
					want = values[1]
					src.Environ = []string{s.Env() + "=" + strings.Join(want, " \t")}
				}
				if sources&4 != 0 {
					want = values[2]
					src.Flags[s.Name] = want
				}
				got, err := Read(src)
				if err != nil {
					t.Fatal(err)
				}
				if !slices.Equal(s.get(got), want) {
					t.Fatalf("got %q, want %q", s.get(got), want)
				}
			})
		}
	}
}

func TestLoadErrors(t *testing.T) {
	masters := map[string][]string{"master": {"redis://a:1"}}
	tests := []struct {
		name    string
		flags   map[string][]string
		environ []string
		want    []string // nil: no error
	}{
		{name: "nothing but a master", flags: masters},
		{name: "an empty variable is given", flags: masters, environ: []string{"REDLOCK_MAX_TTL="},
			want: []string{`REDLOCK_MAX_TTL: "" is not a duration (a number and a unit, such as "100ms" or "24h")`}},
		{name: "an empty variable of a repeated setting", environ: []string{"REDLOCK_MASTER= "},
			want: []string{`REDLOCK_MASTER: is given without a value`}},
		{name: "the first of two variables counts", flags: masters, environ: []string{"REDLOCK_LISTEN=a:1",
			"REDLOCK_LISTEN=bad"}},
		{name: "unknown variables", flags: masters, environ: []string{"REDLOCK_MAXTTL=hunter2",
			"REDLOCK_PASSWORD=hunter2", "OTHER=x", "redlock_listen=x", "REDLOCK_redis://:hunter2@a=x"},
			want: []string{
				`REDLOCK_MAXTTL: unknown setting (did you mean REDLOCK_MAX_TTL?)`,
				`REDLOCK_PASSWORD: unknown setting (known settings: REDLOCK_CONFIG, REDLOCK_MASTER, ` +
					`REDLOCK_UPSTREAM, REDLOCK_UPSTREAM_TIMEOUT, REDLOCK_CA, REDLOCK_CLIENT_CERT, ` +
					`REDLOCK_CLIENT_KEY, REDLOCK_CLIENT_PASSWORD_FILE, REDLOCK_SHARE_UPSTREAM_LOGIN, ` +
					`REDLOCK_ACL_FILE, REDLOCK_LISTEN, REDLOCK_CLUSTER_PORTS, REDLOCK_ANNOUNCE, REDLOCK_TLS_CERT, REDLOCK_TLS_KEY, ` +
					`REDLOCK_TLS_CLIENT_CA, REDLOCK_PROTECTED_MODE, REDLOCK_PROXY_PROTOCOL, ` +
					`REDLOCK_ADMIN, REDLOCK_ADMIN_HOSTS, REDLOCK_ADMIN_PPROF, REDLOCK_ADMIN_LOCKS, ` +
					`REDLOCK_MAX_TTL, REDLOCK_MASTER_TIMEOUT, REDLOCK_GUARD, REDLOCK_FRESH_START, ` +
					`REDLOCK_KEY_PREFIX, REDLOCK_LOCK_KEYS, REDLOCK_LOCK_TAGS, REDLOCK_LOCK_CLASS, REDLOCK_MOVE_FROM_UPSTREAM, ` +
					`REDLOCK_LOCKS_WITHOUT_TTL, REDLOCK_CLUSTER_MODE, REDLOCK_MAX_CLIENTS, REDLOCK_MAX_INPUT_MEMORY, ` +
					`REDLOCK_MAX_UNREAD_MEMORY, REDLOCK_MAX_MESSAGE_MEMORY, REDLOCK_DRAIN_TIMEOUT, ` +
					`REDLOCK_DRAIN_DELAY, REDLOCK_AUDIT_LOG, REDLOCK_LOG_LEVEL, REDLOCK_LOG_FORMAT)`,
				`REDLOCK_redis:xxxxx@a: unknown setting (known settings:`}},
		{name: "the variables of a Kubernetes service", flags: masters, environ: []string{
			"REDLOCK_PORT=tcp://10.0.0.1:6380", "REDLOCK_SERVICE_HOST=10.0.0.1", "REDLOCK_SERVICE_PORT=6380",
			"REDLOCK_SERVICE_PORT_REDIS=6380",
			"REDLOCK_PROXY_PORT_6380_TCP=tcp://10.0.0.1:6380", "REDLOCK_PROXY_PORT_6380_TCP_ADDR=10.0.0.1",
			"REDLOCK_PROXY_PORT_6380_TCP_PORT=6380"}},
		{name: "the variables of the command lock", flags: masters,
			environ: []string{"REDLOCK_KEY=job:1", "REDLOCK_TOKEN=t", "REDLOCK_FENCE=7"}},
		{name: "variables that only look like those of a service", flags: masters, environ: []string{"REDLOCK_PORT=6380",
			"REDLOCK_UPSTREEM=redis://a"},
			want: []string{`REDLOCK_PORT: unknown setting (known settings:`,
				`REDLOCK_UPSTREEM: unknown setting (did you mean REDLOCK_UPSTREAM?)`}},
		{name: "a bad flag", flags: map[string][]string{"master": {"redis://a:1"}, "max-clients": {"many"},
			"master-timeot": {"1s"}},
			want: []string{
				`--master-timeot: unknown setting (did you mean master-timeout?)`,
				`--max-clients: "many" is not a whole number`}},
		{name: "a setting that was removed", flags: map[string][]string{"master": {"redis://a:1"},
			"upstream-connections": {"8"}}, environ: []string{"REDLOCK_UPSTREAM_CONNECTIONS=0"},
			want: []string{
				`REDLOCK_UPSTREAM_CONNECTIONS: no longer a setting: each client has a connection of its own to the upstream; remove it`,
				`--upstream-connections: no longer a setting: each client has a connection of its own to the upstream; remove it`}},
		{name: "a flag with two values", flags: map[string][]string{"master": {"redis://a:1"}, "listen": {"a:1", "b:1"}},
			want: []string{`--listen: takes one value, not 2`}},
		{name: "masters given twice in one variable",
			environ: []string{"REDLOCK_MASTER=redis://:hunter2@a redis://b redis://a:6379"},
			want:    []string{`REDLOCK_MASTER: "redis://a:6379" is the same master as "redis://:xxxxx@a", which has one vote; name it once`}},
		{name: "masters with a comma between",
			flags: map[string][]string{"master": {"redis://:hunter2@a:1,redis://:hunter2@b:1"}},
			want:  []string{`--master: "redis://:xxxxx@b:1" `}},
		{name: "a flag against a default", flags: map[string][]string{"master": {"redis://a"}, "max-ttl": {"10ms"}},
			want: []string{`--max-ttl: "10ms" is not longer than master-timeout "250ms"`}},
		{name: "a flag against a variable", flags: map[string][]string{"master": {"redis://a"}, "max-ttl": {"10ms"}},
			environ: []string{"REDLOCK_MASTER_TIMEOUT=1s"},
			want:    []string{`REDLOCK_MASTER_TIMEOUT: "1s" is not shorter than max-ttl "10ms"`}},
		{name: "no error that only follows from another error", flags: map[string][]string{"master": {"redis://a"},
			"max-ttl": {"long"}, "master-timeout": {"48h"}},
			want: []string{`--max-ttl: "long" is not a duration`}},
		{name: "an overridden variable must be right, too",
			flags:   map[string][]string{"master": {"redis://a"}, "max-ttl": {"1h"}},
			environ: []string{"REDLOCK_MAX_TTL=long"},
			want:    []string{`REDLOCK_MAX_TTL: "long" is not a duration`}},
		{name: "a file that is not there", flags: masters, environ: []string{"REDLOCK_CONFIG=testdata/none"},
			want: []string{`REDLOCK_CONFIG: open testdata/none: no such file or directory`}},
		{name: "a file that is a directory", flags: masters, environ: []string{"REDLOCK_CONFIG=testdata"},
			want: []string{`REDLOCK_CONFIG: read testdata: not a regular file; name a file, or a link to one`}},
		{name: "a file without an end", flags: masters, environ: []string{"REDLOCK_CONFIG=/dev/zero"},
			want: []string{`REDLOCK_CONFIG: read /dev/zero: not a regular file; name a file, or a link to one`}},
		{name: "an empty name of the file", flags: masters, environ: []string{"REDLOCK_CONFIG="}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			_, err := Load(Source{Flags: test.flags, Environ: test.environ})
			if !matches(err, test.want) {
				t.Fatalf("got\n%v\nwant\n%s", err, strings.Join(test.want, "\n"))
			}
		})
	}
}

// matches reports whether the error has the expected lines, and does not show the password.
func matches(err error, want []string) bool {
	if err == nil || want == nil {
		return err == nil && want == nil
	}
	lines := strings.Split(err.Error(), "\n")
	return len(lines) == len(want) && !strings.Contains(err.Error(), secret) &&
		slices.EqualFunc(lines, want, strings.HasPrefix)
}

// TestErrorsOfSeveralSources checks that Load reports errors in several sources together.
func TestErrorsOfSeveralSources(t *testing.T) {
	path := writeFile(t, "listen: nowhere\nmax_ttl: 1s\n")
	_, err := Load(Source{File: path, Environ: []string{"REDLOCK_MAX_TTL=x", "REDLOCK_X=y"},
		Flags: map[string][]string{"max-clients": {"-1"}}})
	want := []string{
		path + `:1: listen: "nowhere" is not host:port`,
		path + `:2: max_ttl: unknown setting`,
		`REDLOCK_X: unknown setting`,
		`REDLOCK_MAX_TTL: "x" is not a duration`,
		`--max-clients: "-1" is less than 1`,
		`master: no master is given`,
	}
	if !matches(err, want) {
		t.Fatalf("got\n%v", err)
	}
}

// TestConfigFlag checks that Read reads the flag's file instead of the environment's file.
func TestConfigFlag(t *testing.T) {
	flag, env := writeFile(t, "listen: flag:1\n"), writeFile(t, "listen: env:1\n")
	for file, want := range map[string]string{flag: "flag:1", "": "env:1"} {
		got, err := Read(Source{File: file, Environ: []string{"REDLOCK_CONFIG=" + env}})
		if err != nil || got.Listen != want {
			t.Errorf("file %q: got %q, %v; want %q", file, got.Listen, err, want)
		}
	}
}

// TestReadWithoutMasters checks that Read works without masters, as healthcheck needs it.
func TestReadWithoutMasters(t *testing.T) {
	got, err := Read(Source{Environ: []string{"REDLOCK_LISTEN=a:1"}})
	if err != nil || got.Listen != "a:1" {
		t.Fatalf("got %v, %v", got, err)
	}
}
