// Which system this gateway belongs to, and the checks before a process becomes the gateway.
//
// 1. hello: the gateway sends the system id that it knows.
// 2. welcome: the control plane answers with its system id and the listeners.
// 3. admit(): after another system id, or if ports are in use, the process does not become the
//   gateway.
//
// Threads: any.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "control/wire.h"

namespace sluice::control {

// The consequences of a welcome.
struct Admission {
  bool answers = false;  // send `ready` as the next message
  wire::StreamReady ready;
  bool joins = true;  // the process becomes the gateway unless the control plane refuses it
};

class Membership {
 public:
  // Returns those `addresses` on which another process listens. May wait for a predecessor's
  // sockets.
  using PortsInUse =
      std::function<std::vector<std::string>(const std::vector<std::string>& addresses)>;

  // Null: no port counts as used.
  explicit Membership(PortsInUse ports_in_use) : ports_in_use_(std::move(ports_in_use)) {}

  // Fills in the hello's fields about the system. `stored`: system id of the desired state, may be
  // empty. `volumes`: number of volumes in it. A state of another system is reported as absent.
  void introduce(const std::string& stored, size_t volumes, wire::StreamHello* hello) const;

  // Error: the control plane belongs to another system; the text says how to correct it.
  Result<Admission> admit(const std::string& stored, const wire::StreamWelcome& welcome);

  // An administrator confirms that this gateway now belongs to `system`. Error: not a system id.
  Result<void> confirm(const std::string& system);

 private:
  std::string system(const std::string& stored) const;

  const PortsInUse ports_in_use_;
  mutable std::mutex mutex_;
  std::string confirmed_;
  bool was_gateway_ = false;  // this process is the gateway, so it uses the ports itself
};

// A UUID in lower case, the form that the control plane generates.
bool valid_system_id(const std::string& id);

}  // namespace sluice::control
