// Package command holds the types that every command of the proxy uses: the [Call], the [Client]
// that sent it, the [Reply] to it, and the description of a [Command].
package command
