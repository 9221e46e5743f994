package conf

import (
	"bytes"
	"fmt"
	"log/slog"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestSettingRows checks every row against the documentation of Setting.
func TestSettingRows(t *testing.T) {
	seen := map[string]bool{}
	for _, s := range Settings() {
		if !regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`).MatchString(s.Name) || s.Name == FileFlag || seen[s.Name] {
			t.Errorf("%q is no good name", s.Name)
		}
		seen[s.Name] = true
		if s.Usage == "" {
			t.Errorf("%s has no usage", s.Name)
		}
		if isServiceLink(s.Env(), "") {
			t.Errorf("%s would hide a misspelt variable as one of Kubernetes", s.Env())
		}
		if s.IsList {
			continue
		}
		c := Default()
		if err := s.set(&c, []string{s.Default}); err != nil || !reflect.DeepEqual(c, Default()) {
			t.Errorf("%s: the default %q gives %v, %v", s.Name, s.Default, c, err)
		}
	}
}

// TestOneRowPerField checks that exactly one row sets each field.
func TestOneRowPerField(t *testing.T) {
	fields := len(slices.DeleteFunc(reflect.VisibleFields(reflect.TypeFor[Config]()),
		func(f reflect.StructField) bool { return !f.IsExported() }))
	if rows := len(Settings()); rows != fields {
		t.Fatalf("%d rows for %d fields", rows, fields)
	}
	setBy := map[string]string{}
	for _, s := range Settings() {
		c := Default()
		if err := s.set(&c, sampleValues[s.Name][0]); err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		for i := range fields {
			field := reflect.TypeFor[Config]().Field(i).Name
			if reflect.DeepEqual(reflect.ValueOf(c).Field(i).Interface(), reflect.ValueOf(Default()).Field(i).Interface()) {
				continue
			}
			if other, twice := setBy[field]; twice {
				t.Errorf("%s and %s both set %s", s.Name, other, field)
			}
			setBy[field] = s.Name
		}
	}
	if len(setBy) != fields {
		t.Errorf("set are only %v", setBy)
	}
}

func TestSettingsCopy(t *testing.T) {
	Settings()[0].Name = "changed"
	if Settings()[0].Name != "master" {
		t.Fatal("the table can be changed")
	}
}

func TestEnv(t *testing.T) {
	s, _ := findSetting("max-ttl")
	if got := s.Env(); got != "REDLOCK_MAX_TTL" {
		t.Fatal(got)
	}
}

// TestLoadedListCopy checks that the caller may change its flags after loading.
func TestLoadedListCopy(t *testing.T) {
	flags := map[string][]string{"master": {"redis://a"}}
	c, err := Load(Source{Flags: flags})
	if err != nil {
		t.Fatal(err)
	}
	flags["master"][0] = "changed"
	if !slices.Equal(c.Masters, []string{"redis://a"}) {
		t.Fatal(c.Masters)
	}
}

func TestDurationForms(t *testing.T) {
	for text, want := range map[string]string{"24h0m0s": "24h", "90m": "1h30m", "1h0m5s": "1h0m5s", "60s": "1m",
		"0": "0s", "100ms": "100ms", "10s": "10s", "100m": "1h40m", "-1h": "-1h"} {
		d, err := parseDuration(text)
		if got := formatDuration(d); err != nil || got != want {
			t.Errorf("%s becomes %s, %v; want %s", text, got, err, want)
		}
	}
}

// TestShownConfig prints a configuration in every way that a program might use.
func TestShownConfig(t *testing.T) {
	c := validConfig()
	var log bytes.Buffer
	slog.New(slog.NewTextHandler(&log, nil)).Info("started", "conf", c)
	slog.New(slog.NewJSONHandler(&log, nil)).Info("started", "conf", &c)
	shown := log.String() + fmt.Sprintf("%v %+v %s %#v %v", c, c, c, c, &c)
	if strings.Contains(shown, secret) {
		t.Errorf("the password is shown: %s", shown)
	}
	for _, want := range []string{`master="redis://:xxxxx@a"`, `"conf":"master=\"redis://:xxxxx@a\"`,
		`listen="127.0.0.1:6380"`, `max-ttl="24h"`} {
		if !strings.Contains(shown, want) {
			t.Errorf("%s is missing in %s", want, shown)
		}
	}
}

func ExampleLoad() {
	c, err := Load(Source{
		Flags:   map[string][]string{"master": {"redis://:secret@redis-1", "redis://redis-2", "redis://redis-3"}},
		Environ: []string{"REDLOCK_MAX_TTL=1h"},
	})
	fmt.Println(c.MaxTTL, err)
	fmt.Println(c)

	_, err = Load(Source{Flags: map[string][]string{"master": {"redis://:secret@redis-1/2"}},
		Environ: []string{"REDLOCK_MAX_TTL=1"}})
	fmt.Println(err)
	// Output:
	// 1h0m0s <nil>
	// master="redis://:xxxxx@redis-1" master="redis://redis-2" master="redis://redis-3" upstream="" upstream-timeout="5s" ca="" client-cert="" client-key="" client-password-file="" share-upstream-login="false" acl-file="" listen="127.0.0.1:6380" cluster-ports="6401-6499" announce="" tls-cert="" tls-key="" tls-client-ca="" protected-mode="true" admin="" admin-pprof="false" admin-locks="false" max-ttl="1h" master-timeout="250ms" guard="true" fresh-start="false" key-prefix="" move-from-upstream="false" locks-without-ttl="allow" cluster-mode="off" max-clients="10000" max-input-memory="256mb" max-unread-memory="256mb" max-message-memory="256mb" drain-timeout="10s" drain-delay="0s" audit-log="false" log-level="info" log-format="text"
	// REDLOCK_MAX_TTL: "1" is not a duration (a number and a unit, such as "100ms" or "24h")
	// --master: "redis://:xxxxx@redis-1/2" names a database, which the client's SELECT chooses; leave it out
}
