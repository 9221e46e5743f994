package commands

import (
	"redlock-proxy/commands/auth/acl"
	"redlock-proxy/commands/catalog/spec"
	"redlock-proxy/commands/command"
	"redlock-proxy/commands/locks"
	"redlock-proxy/commands/server"
)

// Catalog returns all commands that users' rules may name: Redis' and the proxy's own.
func Catalog() *acl.Catalog {
	var ownCommands []acl.OwnCommand
	all := append((&locks.LockCommands{}).Commands(), locks.NewOperatorCommands(locks.OperatorOptions{}).Commands()...)
	for _, c := range append(all, server.New(server.Options{}).ProxyCommand()) {
		ownCommands = append(ownCommands, aclCommand(c))
	}
	return acl.NewCatalog(ownCommands...)
}

// aclCommand describes one of the proxy's own commands for package acl.
func aclCommand(c *command.Command) acl.OwnCommand {
	o := acl.OwnCommand{Name: c.Name, Categories: c.Categories(), Access: spec.ChangesValue, Keys: c.Docs.KeyRule()}
	if c.Docs.Reads {
		o.Access = spec.ReadsValue
	}
	return o
}
