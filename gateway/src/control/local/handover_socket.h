// The UNIX sockets by which locks are asked for (lock_handover.h), as names in a directory. One by
// its name that doesn't listen is a leftover of a process that was killed.
#pragma once

#include <sys/un.h>

#include <string>

#include "control/local/files.h"

namespace sluice::control {

FileDescriptor unix_socket(int flags = 0);
// A pool's path may be longer than the 107 bytes that a socket's may have.
sockaddr_un address_of(int directory, const std::string& name);
bool plain_name(const std::string& name);

// One that listens by `name`, which it takes from whatever has it: whoever asks by that name
// meanwhile reaches that.
Result<FileDescriptor> listen_by_name(int directory, const std::string& name);
// Leftovers; what a process takes for its next name may be among them (listen_by_name() knows).
void remove_stale_sockets(int directory);

}  // namespace sluice::control
