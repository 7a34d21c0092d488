// The clients of Ceph that this process has recorded by the control plane before it opens images by
// them (DESIGN R2): whoever takes over from this gateway blocklists what is recorded, and a client
// that isn't could not be shut out.
//
//   add -> asked over this stream, again over each new one, and now and then while the answer is no
//       COMMITTED  recorded: stays so while the process lives, whatever becomes of the stream
//       FENCED     final: that client is shut out
//
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "control/volume/turns.h"
#include "control/wire.h"

namespace sluice::control {

class ClientCommits {
 public:
  enum class State : uint8_t { kAsked, kRecorded, kFenced };
  // `why`: of a refusal, for people.
  using Told = std::function<void(State state, const std::string& why)>;

  // `request`: Stream::request; `now`: of a clock that goes on.
  explicit ClientCommits(std::function<bool(wire::ConnectRequest)> request,
                         std::function<Nanos()> now = boot_time)
      : request_(std::move(request)), now_(std::move(now)) {}

  // Asks for `client` to be recorded for the pool. `told` comes with every answer, on any thread;
  // it must not wait. Each who asks is told: a pool that was changed may have the client that its
  // former self still has, too. The number is what remove() knows it by, never 0.
  uint64_t add(const std::string& pool, const std::string& client, Told told);
  // Nothing is told to it any more, but for what is being told right now.
  void remove(uint64_t added);

  // --- the stream's
  void connected();
  void received(const wire::RadosClientOutcome& outcome);
  void lost();
  void tick();  // a few times a second

 private:
  struct Entry {
    std::string pool;
    std::string client;
    State state = State::kAsked;
    uint64_t request = 0;  // under way; 0: none
    Nanos again = 0;       // not before
    std::shared_ptr<const Told> told;
  };
  void ask_all(bool recorded_too);

  const std::function<bool(wire::ConnectRequest)> request_;
  const std::function<Nanos()> now_;
  std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by what add() gave
  uint64_t next_entry_ = 1;
  uint64_t next_request_ = 1;
};

}  // namespace sluice::control
