#include "control/local/handover_socket.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "control/local/space_reserve.h"

namespace sluice::control {
namespace {

constexpr std::string_view kEnd = ".sock";
constexpr std::string_view kFresh = ".new";  // suffix of the name until the socket listens
// Each removal of stale sockets can make one attempt fail. This is more than the number of gateways
// on a node that open a pool at once.
constexpr int kTries = 100;

// Returns 0 or an errno.
int listen_by(int socket, int directory, const std::string& name) {
  const std::string fresh = name + std::string(kFresh);
  ::unlinkat(directory, fresh.c_str(), 0);
  const sockaddr_un address = address_of(directory, fresh);
  const bool listens =
      ::bind(socket, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0 &&
      ::fchmodat(directory, fresh.c_str(), 0600, 0) == 0 && ::listen(socket, 128) == 0 &&
      ::renameat(directory, fresh.c_str(), directory, name.c_str()) == 0;
  return listens ? 0 : errno;
}

bool is_sockets(std::string_view name) {
  if (name.ends_with(kFresh)) name.remove_suffix(kFresh.size());
  return name.ends_with(kEnd);
}

}  // namespace

FileDescriptor unix_socket(int flags) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

sockaddr_un address_of(int directory, const std::string& name) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = "/proc/self/fd/" + std::to_string(directory) + '/' + name;
  std::strncpy(address.sun_path, path.c_str(), sizeof address.sun_path - 1);
  return address;
}

bool plain_name(const std::string& name) {
  return !name.empty() && name.size() <= 64 && name.find('/') == std::string::npos && name != "." &&
         name != "..";
}

Result<FileDescriptor> listen_by_name(int directory, const std::string& name) {
  int error = EINVAL;
  bool released = false;
  // A process that opens the pool now removes sockets that do not listen yet; then tries again.
  for (int tries = 0; tries < kTries && plain_name(name); ++tries) {
    FileDescriptor socket = unix_socket();
    error = socket.valid() ? listen_by(socket.get(), directory, name) : errno;
    if (error == 0 && released) keep_reserve(directory);
    if (error == 0) return socket;
    const bool full = is_out_of_space(error) && !released;
    released = released || full;
    if (error != ENOENT && !(full && release_reserve(directory))) break;
  }
  return Error{"can't listen on the socket " + name +
               " in the pool's .sluice directory: " + reason_of(error)};
}

void remove_stale_sockets(int directory) {
  const int copy = ::openat(directory, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  DIR* list = copy < 0 ? nullptr : ::fdopendir(copy);
  if (list == nullptr) return;
  while (const dirent* entry = ::readdir(list)) {
    const std::string name = entry->d_name;
    if (!is_sockets(name)) continue;
    const FileDescriptor probe = unix_socket(SOCK_NONBLOCK);
    const sockaddr_un address = address_of(directory, name);
    if (::connect(probe.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 &&
        errno == ECONNREFUSED) {
      ::unlinkat(directory, name.c_str(), 0);
    }
  }
  ::closedir(list);
}

}  // namespace sluice::control
