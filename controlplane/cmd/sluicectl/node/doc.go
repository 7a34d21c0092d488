// Package node sets a Debian server up as a node of a cluster: preflight, files, units and objects of the API, from the installed packages.
// It makes ordinary files and units only, as docs/INSTALL.md lists them. Each step is idempotent, so a run after an interruption
// continues, and a run after the last step changes nothing.
package node
