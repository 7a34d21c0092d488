#include "admin/socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>

namespace sluice::admin {
namespace {

Error failed(std::string_view what, const std::string& path, int error) {
  return Error{fmt::format("admin socket {}: {}: {}", path, what, std::strerror(error))};
}

Result<sockaddr_un> address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.empty() || path.size() >= sizeof address.sun_path) {
    return Error{fmt::format("admin socket {}: a socket's path has 1 to {} bytes", path,
                             sizeof address.sun_path - 1)};
  }
  std::copy(path.begin(), path.end(), address.sun_path);
  return address;
}

const sockaddr* generic(const sockaddr_un& address) {
  return reinterpret_cast<const sockaddr*>(&address);
}

FileDescriptor make_socket(int flags) {
  return FileDescriptor(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | flags, 0));
}

// A socket left behind by a gateway that was killed refuses connections.
Result<void> remove_stale(const std::string& path, const sockaddr_un& address) {
  struct stat status{};
  if (lstat(path.c_str(), &status) != 0) return {};
  if (!S_ISSOCK(status.st_mode)) {
    return Error{fmt::format("admin socket {}: something else is there; remove it", path)};
  }
  const FileDescriptor probe = make_socket(SOCK_NONBLOCK);
  if (::connect(probe.get(), generic(address), sizeof address) == 0 || errno == EAGAIN) {
    return Error{
        fmt::format("admin socket {}: another gateway serves it; give this one its own", path)};
  }
  if (errno != ECONNREFUSED && errno != ENOENT) return failed("can't be probed", path, errno);
  if (::unlink(path.c_str()) != 0 && errno != ENOENT) {
    return failed("can't replace the old one", path, errno);
  }
  return {};
}

Result<void> make_directory(const std::string& path) {
  const std::filesystem::path directory = std::filesystem::path(path).parent_path();
  if (directory.empty()) return {};
  if (::mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed("can't make its directory", path, errno);
  }
  return {};
}

}  // namespace

bool wait_ready(int fd, short events, int stop, Deadline deadline) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    if (left.count() <= 0) return false;
    std::array<pollfd, 2> fds = {pollfd{fd, events, 0}, pollfd{stop, POLLIN, 0}};
    const int ready = ::poll(fds.data(), stop >= 0 ? 2 : 1, static_cast<int>(left.count()));
    if (ready < 0 && errno != EINTR) return false;
    if (ready <= 0) continue;
    if (fds[1].revents != 0) return false;
    if (fds[0].revents != 0) return true;
  }
}

bool read_line(int fd, int stop, Deadline deadline, size_t limit, std::string* buffer,
               std::string* line) {
  std::array<char, 4096> chunk;
  size_t searched = 0;
  for (;;) {
    const size_t end = buffer->find('\n', searched);
    if (end != std::string::npos && end <= limit) {
      *line = buffer->substr(0, end);
      buffer->erase(0, end + 1);
      return true;
    }
    searched = buffer->size();
    if (searched > limit || !wait_ready(fd, POLLIN, stop, deadline)) return false;
    const ssize_t got = ::recv(fd, chunk.data(), chunk.size(), MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (got <= 0) return false;
    buffer->append(chunk.data(), static_cast<size_t>(got));
  }
}

bool write_all(int fd, int stop, Deadline deadline, std::string_view text) {
  while (!text.empty()) {
    if (!wait_ready(fd, POLLOUT, stop, deadline)) return false;
    const ssize_t sent = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) continue;
    if (sent < 0) return false;
    text.remove_prefix(static_cast<size_t>(sent));
  }
  return true;
}

Result<FileDescriptor> listen_at(const std::string& path) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address) return Error{address.error()};
  for (const Result<void>& step : {make_directory(path), remove_stale(path, address.value())}) {
    if (!step) return Error{step.error()};
  }
  FileDescriptor listener = make_socket(SOCK_NONBLOCK);
  if (!listener.valid()) return failed("can't be made", path, errno);
  // Before bind(), which gives the file this mode: it is never open to others, not for a moment.
  if (::fchmod(listener.get(), 0600) != 0 ||
      ::bind(listener.get(), generic(address.value()), sizeof address.value()) != 0 ||
      ::listen(listener.get(), 16) != 0) {
    return failed("can't be made", path, errno);
  }
  return listener;
}

Result<FileDescriptor> connect_to(const std::string& path) {
  const Result<sockaddr_un> address = address_of(path);
  if (!address) return Error{address.error()};
  FileDescriptor client = make_socket(0);
  if (!client.valid()) return failed("can't be reached", path, errno);
  if (::connect(client.get(), generic(address.value()), sizeof address.value()) == 0) return client;
  if (errno == ENOENT || errno == ECONNREFUSED) {
    return Error{fmt::format("no gateway serves {}; is it running? --socket names another", path)};
  }
  return failed("can't connect", path, errno);
}

uid_t peer_user(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  if (::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) return static_cast<uid_t>(-1);
  return peer.uid;
}

}  // namespace sluice::admin
