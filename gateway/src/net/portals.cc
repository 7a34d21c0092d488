#include "net/portals.h"

#include <fmt/format.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/log.h"
#include "base/safety_mutation.h"
#include "base/socket_address.h"
#include "net/reactor.h"

namespace sluice::net {

Portals::Portals(const std::vector<std::unique_ptr<Reactor>>& reactors, std::string congestion,
                 Accepted accepted)
    : reactors_(reactors), congestion_(std::move(congestion)), accepted_(std::move(accepted)) {}

Result<int> Portals::open_socket(const Portal& portal) const {
  const Result<SocketAddress> parsed = parse_socket_address(portal.address, 0);
  if (!parsed) return Error{parsed.error()};
  const KernelAddress address = kernel_address(parsed.value());
  const int fd = socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return Error{fmt::format("'{}': {}", portal.address, std::strerror(errno))};
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
  if (portal.forwarding && !mutation_disables(Guard::kLinger)) {
    // Every connection that it accepts has it from its creation (DESIGN R6).
    const linger reset{1, 0};
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
  }
  if (!congestion_.empty() && setsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, congestion_.data(),
                                         static_cast<socklen_t>(congestion_.size()))) {
    log::warning("congestion control not available, using the system's default",
                 {{"name", congestion_}});
  }
  const char* step = "bind";
  if (bind(fd, address.get(), address.size) == 0) {
    step = "listen";
    if (::listen(fd, 1024) == 0) return fd;
  }
  const int error = errno;
  ::close(fd);
  const char* remedy = error == EADDRINUSE ? "; another program listens there, stop it or choose "
                                             "another port"
                       : error == EADDRNOTAVAIL ? "; no interface of this machine has that address"
                                                : "";
  return Error{
      fmt::format("can't {} portal {}: {}{}", step, portal.address, std::strerror(error), remedy)};
}

Result<void> Portals::open(const std::vector<Portal>& portals) {
  std::vector<int> fds;
  for (const Portal& portal : portals) {
    auto fd = open_socket(portal);
    if (!fd) {
      for (const int open : fds) ::close(open);
      return Error{fd.error()};
    }
    fds.push_back(fd.value());
  }
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < portals.size(); ++i) {
    const unsigned reactor = next_++ % static_cast<unsigned>(reactors_.size());
    open_.push_back({local_address(fds[i]), reactor, fds[i]});
    reactors_[reactor]->post([this, reactor, fd = fds[i], portal = portals[i]] {
      reactors_[reactor]->listeners().listen(fd, [this, portal](int s) { accepted_(s, portal); });
    });
  }
  return {};
}

std::vector<std::string> Portals::addresses() const {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> bound;
  for (const Open& portal : open_) bound.push_back(portal.address);
  return bound;
}

void Portals::close(const std::vector<std::string>& addresses) {
  const std::lock_guard lock(mutex_);
  std::erase_if(open_, [&](const Open& portal) {
    if (std::find(addresses.begin(), addresses.end(), portal.address) == addresses.end()) {
      return false;
    }
    Reactor* reactor = reactors_[portal.reactor].get();
    reactor->post([reactor, fd = portal.fd] { reactor->listeners().stop(fd); });
    return true;
  });
}

}  // namespace sluice::net
