// Package accounts manages local accounts: hashes of passwords, AccountService, and the check of a password at login.
package accounts
