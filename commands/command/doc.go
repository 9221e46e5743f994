// Package command is what every command of the proxy works with: the [Call], with the [Client] that
// it came from and the [Reply] that it gets, and how a [Command] is described.
package command
