// Package conf holds the configuration of the proxy: one struct, its defaults, its strict loading
// and its validation.
//
// Every setting has one name, which determines its flag (--max-ttl), its YAML key (max-ttl:) and
// its environment variable (REDLOCK_MAX_TTL). A flag overrides the environment, the environment
// overrides the file, the file overrides the default:
//
//	cfg, err := conf.Load(conf.Source{
//		Flags:   map[string][]string{"max-ttl": {"1h"}}, // only the flags that were given
//		Environ: os.Environ(),
//		File:    "conf.yaml", // or empty: then REDLOCK_CONFIG names the file, if it is set
//	})
//
// Loading is strict. An unknown name, a name given twice, a value of the wrong type or out of its
// range is an error, even if a stronger source overrides the value. Load reports all errors
// together, each with its source:
//
//	conf.yaml:7: max-ttl: "12x" is not a duration (a number and a unit, such as "100ms" or "24h")
//	REDLOCK_MAX_CLIENTS: "0" is less than 1
//	--listen: "6380" is not host:port
//
// A variable with an empty value counts as given: REDLOCK_KEY_PREFIX= overrides the prefix of the
// file.
//
// In the file, ${NAME} stands for an environment variable in every string value, and $$ for a
// dollar sign. So a password need not be in the file. In a URL, write the special characters of the
// password as %XX, in the variable, too.
//
// No error, String or log line of this package shows the password of a URL: see [Redact].
//
// # A new setting
//
// A new setting needs a documented field of [Config], its default in [Default], one row of the
// table in settings.go, and a commented entry in conf.example.yaml. The row sets whether the
// setting can change while the proxy runs ([ReloadMode]). If it can, the package that uses the
// setting applies it in its method Apply, and a test in integration/operate checks that. Flags,
// variables, keys, help, errors and most tests follow from the row.
package conf
