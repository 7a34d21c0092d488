// The open portals of the engine: their listening sockets, spread over the reactors.
//
// Threads: any; the callback runs on the reactor that has the socket.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "net/portal.h"

namespace sluice::net {

class Reactor;

class Portals {
 public:
  // Gets the descriptor of each new connection and the portal that it came to.
  using Accepted = std::function<void(int fd, const Portal& portal)>;
  // `reactors` outlives this object and is complete before open(). `congestion`: TCP_CONGESTION of
  // every connection; empty: the system's default.
  Portals(const std::vector<std::unique_ptr<Reactor>>& reactors, std::string congestion,
          Accepted accepted);

  // Opens all or none, in addition to the open ones. Error: the address, the reason, the remedy.
  Result<void> open(const std::vector<Portal>& portals);
  // The bound addresses in the order in which they were opened, with the kernel's choice of port.
  std::vector<std::string> addresses() const;
  // Closes portals by their bound addresses; ignores others. Their connections stay.
  void close(const std::vector<std::string>& addresses);

 private:
  struct Open {
    std::string address;
    unsigned reactor = 0;
    int fd = -1;
  };
  Result<int> open_socket(const Portal& portal) const;

  const std::vector<std::unique_ptr<Reactor>>& reactors_;
  const std::string congestion_;
  const Accepted accepted_;
  mutable std::mutex mutex_;
  std::vector<Open> open_;
  unsigned next_ = 0;  // the reactor of the next portal: in rotation
};

}  // namespace sluice::net
