// Package web serves the console port over HTTPS: the API for browsers and scripts, and the login of people. A caller shows a client
// certificate, or has a login: by a local account, or by an OpenID provider. Rules: controlplane/decisions/console-access.md.
package web
