// The UNIX sockets for lock handover (lock_handover.h), named in a directory. A socket without a
// listener is left over from a killed process.
#pragma once

#include <sys/un.h>

#include <string>

#include "control/local/files.h"

namespace sluice::control {

FileDescriptor unix_socket(int flags = 0);
// Works also if the path of the pool exceeds the 107 bytes that a socket's path may have.
sockaddr_un address_of(int directory, const std::string& name);
bool plain_name(const std::string& name);

// Listens on `name`. If another socket has the name, it is replaced; requests reach the new socket
// from then on.
Result<FileDescriptor> listen_by_name(int directory, const std::string& name);
// Removes stale sockets. A socket that a process is about to rename may be among them;
// listen_by_name() handles that.
void remove_stale_sockets(int directory);

}  // namespace sluice::control
