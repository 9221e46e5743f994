package track

import (
	"strconv"

	"redlock-proxy/commands/catalog/syntax"
	"redlock-proxy/internal/resp"
)

// Profile is what of a connection's state another connection can be given: how it speaks, where, and what others are told of
// the client.
type Profile struct {
	// Proto is the protocol, DB the selected database.
	Proto, DB int
	// Name is the client's, LibName and LibVer are those of its library.
	Name, LibName, LibVer string
}

// Commands are what gives it to a new connection that speaks RESP2 and begins in this database.
func (p Profile) Commands(begins int) (all [][]string) {
	say := func(unless bool, words ...string) {
		if !unless {
			all = append(all, words)
		}
	}
	say(p.Proto == 2, "HELLO", strconv.Itoa(p.Proto))
	say(p.DB == begins, "SELECT", strconv.Itoa(p.DB))
	say(p.Name == "", "CLIENT", "SETNAME", p.Name)
	say(p.LibName == "", "CLIENT", "SETINFO", "LIB-NAME", p.LibName)
	say(p.LibVer == "", "CLIENT", "SETINFO", "LIB-VER", p.LibVer)
	return all
}

// IsProfile reports whether there is nothing to the connection but its profile: no login that it did not begin with, no
// transaction, no subscription, and nothing that is not known.
func (s *State) IsProfile() bool {
	plain := newState()
	plain.Profile, plain.URLLogin = s.Profile, s.URLLogin
	return *s == plain
}

// label is what a command sets of what others are told of the client.
type label uint8

const (
	nothing label = iota
	anything
	itsName
	libName
	libVer
)

// maxLabel is how long one may be that is kept, in bytes.
const maxLabel = 256

// sets has the slot's command set a label, if that can be kept.
func (s *Slot) sets(what label, value []byte) {
	if s.label, s.text = what, string(value); len(value) > maxLabel {
		s.label, s.text = anything, ""
	}
}

// clients takes what a CLIENT sets into its slot.
func (s *Slot) clients(words [][]byte) {
	sub, option := "", ""
	if len(words) > 1 {
		sub = syntax.Lower(words[1])
	}
	if len(words) == 4 {
		option = syntax.Folded(words[2])
	}
	switch {
	case sub == "getname", sub == "": // which is refused
	case sub == "setname" && len(words) == 3:
		s.sets(itsName, words[2])
	case sub == "setinfo" && option == "lib-name":
		s.sets(libName, words[3])
	case sub == "setinfo" && option == "lib-ver":
		s.sets(libVer, words[3])
	default:
		s.label = anything
	}
}

// hello takes what a HELLO sets into its slot. A word that may be a login counts as one.
func (s *Slot) hello(words [][]byte) {
	for i, word := range words[1:] {
		switch syntax.Folded(word) {
		case "auth":
			s.Arg = 1
		case "setname":
			if s.label = anything; i == 1 && len(words) == 4 {
				s.sets(itsName, words[3])
			}
		}
	}
}

// relabel learns from the answer to what sets a label. What the upstream does not know, it has not done either.
func (s *State) relabel(of Slot, r *resp.ReplyScanner) {
	unknown := r.Begins("-ERR unknown subcommand") || r.Begins("-ERR Unknown subcommand")
	switch granted := r.Kind() == '%' || r.Kind() == '*' || r.Begins("+OK"); {
	case of.label == nothing:
	case granted && of.label == itsName:
		s.Name = of.text
	case granted && of.label == libName:
		s.LibName = of.text
	case granted && of.label == libVer:
		s.LibVer = of.text
	case of.label == anything && !unknown, of.Kind == Hello, r.Begins("+QUEUED"): // servers differ in what a HELLO does that they refuse
		s.Touched = true
	}
}
