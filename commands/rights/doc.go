// Package rights checks the permissions of a client at the upstream. It asks the upstream as the
// client's user before a command runs on the masters, and remembers the answers. It also defines
// how the upstream agrees to the side effects of a program on lock keys before the program is
// committed.
package rights
