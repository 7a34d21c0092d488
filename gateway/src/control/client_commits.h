// Records this process's Ceph clients with the control plane before it opens images through them
// (DESIGN R2). A gateway that takes over blocklists the recorded clients; an unrecorded client
// would keep its access.
//
// - add() sends a request. It is sent again over each new stream, and every limits::kClientAgain
//   until the answer is COMMITTED or FENCED.
// - COMMITTED: the client is recorded for as long as the process lives, even if the stream ends.
// - FENCED is final: the client is blocklisted.
//
// Threads: any.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "base/boot_clock.h"
#include "control/wire.h"

namespace sluice::control {

class ClientCommits {
 public:
  enum class State : uint8_t { kAsked, kRecorded, kFenced };
  // `why`: the reason of a refusal, for people.
  using StateCallback = std::function<void(State state, const std::string& why)>;

  // `request`: Stream::request. `now`: a clock that never steps back.
  explicit ClientCommits(std::function<bool(wire::ConnectRequest)> request,
                         std::function<Nanos()> now = boot_clock_now)
      : request_(std::move(request)), now_(std::move(now)) {}

  // Requests that `client` is recorded for the pool. `on_state` runs for every answer, on any
  // thread; it must not block. Several entries may name the same client, such as a changed pool and
  // its predecessor; each has its own callback. Returns a handle for remove(), never 0.
  uint64_t add(const std::string& pool, const std::string& client, StateCallback on_state);
  // No callback starts after this; one that runs already may still be running.
  void remove(uint64_t added);

  // --- called by the stream
  void connected();
  void received(const wire::RadosClientOutcome& outcome);
  void lost();
  void tick();  // call it a few times a second

 private:
  struct Entry {
    std::string pool;
    std::string client;
    State state = State::kAsked;
    uint64_t request = 0;  // id of the request in flight; 0: none
    Nanos again = 0;       // earliest time of the next request
    std::shared_ptr<const StateCallback> on_state;
  };
  void ask_all(bool recorded_too);

  const std::function<bool(wire::ConnectRequest)> request_;
  const std::function<Nanos()> now_;
  std::mutex mutex_;
  std::map<uint64_t, Entry> entries_;  // by the handle from add()
  uint64_t next_entry_ = 1;
  uint64_t next_request_ = 1;
};

}  // namespace sluice::control
