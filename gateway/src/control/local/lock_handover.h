// How gateways of one node pass the lock of a local volume on (DESIGN R2): who wants it asks the
// process that the record names, over a UNIX socket in the pool's `.sluice` directory. A holder
// yields to an order that is as new as its own or newer, refuses an older one. One that gives no
// answer for limits::kHolderPatience is killed, by a pidfd that is proven to be of that process.
//
// One request per connection, one line each way:
//   lock 1 <volume uid> <order>     ->   yielding | refused <order> | not-held
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "base/clock.h"
#include "control/local/files.h"
#include "control/local/record.h"

namespace sluice::control {

enum class Yield : uint8_t {
  kYielding,  // it will let go as soon as its commands have completed
  kRefused,   // it has a newer order
  kNotHeld,   // it has no lock on that volume
  // --- never said, but found out by who asks
  kSilent,  // no answer in time: it hangs
  // Nobody listens on its socket, or it closed without an answer: it ends, has ended, or didn't get
  // the whole question in time. Worth asking once more.
  kUnreachable,
};
struct HolderAnswer {
  Yield yield = Yield::kNotHeld;
  uint64_t order = 0;  // the holder's, with kRefused
};

// The holder's end. Pools of one directory share it: the old one of a pool that was changed lives
// as long as a volume's place does, and what is held through it is asked for by the same name.
class HandoverServer {
 public:
  using Asked = std::function<HolderAnswer(const std::string& volume, uint64_t order)>;
  // Listens on `name` in `directory`; where this process does so already, that is the one. `asked`
  // answers for the process, whatever pool: it runs on the server's thread and must do so at once.
  static Result<std::shared_ptr<HandoverServer>> start(int directory, const std::string& name,
                                                       Asked asked);
  // Stops, and removes the socket.
  virtual ~HandoverServer() = default;
};

// The other end; waits `patience` at most. `directory` is the same `.sluice`, by whatever path it
// is seen here.
HolderAnswer ask_holder(int directory, const Holder& holder, const std::string& volume,
                        uint64_t order, Nanos patience);

// Kills that process. Error: why it can't be done: it is this process, has ended already, runs in
// another pid namespace or before the last boot, or isn't ours to kill.
Result<void> kill_holder(const Holder& holder, const Holder& self);

}  // namespace sluice::control
