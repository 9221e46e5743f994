package server

import (
	"fmt"

	"redlock-proxy/commands/command"
)

// reloadSubcommand is PROXY RELOAD, which does the same as SIGHUP, with a reply.
const reloadSubcommand = "reload"

// proxyReload reloads the configuration, and replies with changed and pending settings.
func (s *Server) proxyReload(c command.Call) {
	if s.opts.Reload == nil {
		c.Out.WriteError("ERR this proxy has no configuration to reload")
		return
	}
	changed, pending, err := s.opts.Reload(sourceOf(c.Client))
	if err != nil {
		c.Out.WriteError("ERR the configuration was not reloaded: " + err.Error())
		return
	}
	c.Out.Put(command.Fields{"changed", changed, "needs_restart", pending})
}

// sourceOf describes the client that asks for a reload, for the log.
func sourceOf(c *command.Client) string {
	identity := c.Identity()
	text := "PROXY RELOAD"
	if identity.Addr != nil {
		text += fmt.Sprintf(" from %v", identity.Addr)
	}
	if identity.User != "" {
		text += fmt.Sprintf(" by user %q", identity.User)
	}
	return text
}
