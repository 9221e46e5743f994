package server

import (
	"fmt"

	"redlock-proxy/commands/command"
)

// reloadSubcommand is PROXY RELOAD: what SIGHUP does, with an answer.
const reloadSubcommand = "reload"

// proxyReload answers with the settings that hold now and did not before, and with those that will
// hold after a restart only; a line for each.
func (s *Server) proxyReload(c command.Call) {
	if s.opts.Reload == nil {
		c.Out.Error("ERR this proxy has no configuration to be read again")
		return
	}
	changed, pending, err := s.opts.Reload(asker(c.Client))
	if err != nil {
		c.Out.Error("ERR nothing is changed: " + err.Error())
		return
	}
	c.Out.Put(command.Fields{"changed", changed, "needs_restart", pending})
}

// asker is who a client is, for the log.
func asker(c *command.Client) string {
	who := c.Identity()
	text := "PROXY RELOAD"
	if who.Addr != nil {
		text += fmt.Sprintf(" from %v", who.Addr)
	}
	if who.User != "" {
		text += fmt.Sprintf(" by user %q", who.User)
	}
	return text
}
