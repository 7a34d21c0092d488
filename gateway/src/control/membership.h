// Which system this gateway belongs to, and what a process proves before it becomes the gateway.
//
//   hello (the system known here) -> welcome (the control plane's system, where to listen)
//     -> admit(): another system, or ports in use: the process does not become the gateway
//
// Values and a mutex; any thread.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/wire.h"

namespace sluice::control {

// What follows from a welcome.
struct Admission {
  bool answers = false;  // by `ready`, which then is the next message
  wire::StreamReady ready;
  bool joins = true;  // the process becomes the gateway, unless the control plane refuses it
};

class Membership {
 public:
  // The addresses of these that another process listens on. May wait for a predecessor's sockets.
  using PortsInUse =
      std::function<std::vector<std::string>(const std::vector<std::string>& addresses)>;

  // Null: nothing listens.
  explicit Membership(PortsInUse ports_in_use) : ports_in_use_(std::move(ports_in_use)) {}

  // Fills in what a hello says of the system. `stored`: the desired state's system, may be empty;
  // `volumes`: how many volumes that state has. A state of another system is not held any more.
  void introduce(const std::string& stored, size_t volumes, wire::StreamHello* hello) const;

  // Error: the control plane is of another system; with the remedy.
  Result<Admission> admit(const std::string& stored, const wire::StreamWelcome& welcome);

  // An administrator has confirmed that this gateway belongs to that system from now on. Error: no
  // system id.
  Result<void> confirm(const std::string& system);

 private:
  std::string system(const std::string& stored) const;

  const PortsInUse ports_in_use_;
  mutable std::mutex mutex_;
  std::string confirmed_;
  bool was_gateway_ = false;  // this process: its ports are its own
};

// A UUID in lower case, as the control plane makes one.
bool valid_system_id(const std::string& id);

// 32 random hexadecimal digits.
std::string fresh_incarnation();

}  // namespace sluice::control
