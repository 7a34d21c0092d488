// Who holds an image's exclusive lock, as written beside the image (metadata `sluice.holder`). The
// lock itself names an address only; with this, a gateway that was killed is recognised by its
// successor on the same node, which need not wait until Ceph gives the dead one up, and an error
// can name a process.
#pragma once

#include <optional>
#include <string>

namespace sluice::rbd {

struct Holder {
  std::string client;  // RadosClient::addresses()
  std::string host;
  std::string boot;  // of the kernel, and the pid namespace: what pids count in
  long pid = 0;
  unsigned long started = 0;  // clock ticks after boot, /proc/PID/stat

  static Holder self(const std::string& client);
  static std::optional<Holder> parse(const std::string& text);
  std::string text() const;
  // A process of this node, there or gone. Both false where nobody here can tell.
  bool is_alive() const;
  bool is_dead() const;
  bool is_self() const;
  std::string describe() const;  // "process 123 on host-a"
};

}  // namespace sluice::rbd
