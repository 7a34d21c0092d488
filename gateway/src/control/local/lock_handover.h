// How gateways of one node hand over the lock of a local volume (DESIGN R2). A gateway that needs
// the lock asks the process that the record names, over a UNIX socket in the pool's `.sluice`
// directory. The holder yields to an order that is not older than its own and refuses older ones. A
// holder that does not answer for limits::kHolderPatience is killed through a pidfd, after a check
// that the pidfd refers to that process.
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
  kYielding,  // it releases the lock after its commands have completed
  kRefused,   // its order is newer
  kNotHeld,   // it does not hold the lock of that volume
  // --- never sent; the caller's own result
  kSilent,  // no answer in time: the holder hangs
  // There is no listener, or the connection was closed without an answer: the holder is ending, has
  // ended, or did not receive the whole request in time. Retry.
  kUnreachable,
};
struct HolderAnswer {
  Yield yield = Yield::kNotHeld;
  uint64_t order = 0;  // the holder's order; with kRefused only
};

// The server in the holder. Pools with the same directory share it. A changed pool keeps its old
// object while a volume uses it, and its locks are requested under the same name.
class HandoverServer {
 public:
  using Asked = std::function<HolderAnswer(const std::string& volume, uint64_t order)>;
  // Listens on `name` in `directory`; if this process already does, returns the same server.
  // `asked` answers for all pools of the process. It runs on the server's thread and must not
  // block.
  static Result<std::shared_ptr<HandoverServer>> start(int directory, const std::string& name,
                                                       Asked asked);
  // Stops and removes the socket.
  virtual ~HandoverServer() = default;
};

// The client; waits for at most `patience`. `directory` is the same `.sluice`, possibly seen under
// another path.
HolderAnswer ask_holder(int directory, const Holder& holder, const std::string& volume,
                        uint64_t order, Nanos patience);

// Kills that process. Error: why it is not possible. The holder is this process, has ended, runs in
// another pid namespace, started before the last boot, or the permission is missing.
Result<void> kill_holder(const Holder& holder, const Holder& self);

}  // namespace sluice::control
