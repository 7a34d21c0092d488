// The process that holds an image's exclusive lock, stored with the image (metadata
// `sluice.holder`), because the lock itself contains only an address. With it a gateway recognizes
// a killed predecessor on its own node and need not wait for Ceph's timeout, and errors can name a
// process.
#pragma once

#include <optional>
#include <string>

namespace sluice::rbd {

struct Holder {
  std::string client;  // RadosClient::addresses()
  std::string host;
  std::string boot;  // boot id of the kernel; with the pid namespace it makes pids unique
  long pid = 0;
  unsigned long started = 0;  // clock ticks after boot, from /proc/PID/stat

  static Holder self(const std::string& client);
  static std::optional<Holder> parse(const std::string& text);
  std::string text() const;
  // State of the process if it is on this node. Both false: unknown from here.
  bool is_alive() const;
  bool is_dead() const;
  bool is_self() const;
  std::string describe() const;  // "process 123 on host-a"
};

}  // namespace sluice::rbd
