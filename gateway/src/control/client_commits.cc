#include "control/client_commits.h"

#include <utility>
#include <vector>

#include "base/limits.h"

namespace sluice::control {

uint64_t ClientCommits::add(const std::string& pool, const std::string& client,
                            StateCallback on_state) {
  uint64_t added = 0;
  {
    const std::lock_guard lock(mutex_);
    added = next_entry_++;
    Entry& entry = entries_[added];
    entry.pool = pool;
    entry.client = client;
    entry.on_state = std::make_shared<const StateCallback>(std::move(on_state));
  }
  ask_all(false);
  return added;
}

void ClientCommits::remove(uint64_t added) {
  const std::lock_guard lock(mutex_);
  entries_.erase(added);
}

// Sends a request for each entry without an answer and without a request in flight.
void ClientCommits::ask_all(bool recorded_too) {
  std::vector<wire::ConnectRequest> messages;
  const Nanos now = now_();
  {
    const std::lock_guard lock(mutex_);
    for (auto& [added, entry] : entries_) {
      if (entry.request != 0 || entry.state == State::kFenced) continue;
      if (!recorded_too && (entry.state == State::kRecorded || now < entry.again)) continue;
      entry.request = next_request_++;
      entry.again = now + limits::kClientAgain;
      wire::RadosClientCommit& commit = *messages.emplace_back().mutable_rados_client_commit();
      commit.set_request_id(entry.request);
      commit.set_pool_uid(entry.pool);
      commit.set_client(entry.client);
    }
  }
  for (wire::ConnectRequest& message : messages) {
    const uint64_t id = message.rados_client_commit().request_id();
    if (request_(std::move(message))) continue;
    const std::lock_guard lock(mutex_);  // there is no stream
    for (auto& [added, entry] : entries_) {
      if (entry.request == id) entry.request = 0;
    }
  }
}

void ClientCommits::connected() { ask_all(true); }

void ClientCommits::received(const wire::RadosClientOutcome& outcome) {
  std::shared_ptr<const StateCallback> on_state;
  State state = State::kAsked;
  {
    const std::lock_guard lock(mutex_);
    for (auto& [added, entry] : entries_) {
      if (outcome.request_id() == 0 || entry.request != outcome.request_id()) continue;
      entry.request = 0;
      if (outcome.result() == wire::COMMIT_RESULT_COMMITTED) entry.state = State::kRecorded;
      if (outcome.result() == wire::COMMIT_RESULT_FENCED) entry.state = State::kFenced;
      state = entry.state;
      on_state = entry.on_state;
    }
  }
  if (on_state) (*on_state)(state, outcome.reason());
}

// Requests of the lost stream get no answer.
void ClientCommits::lost() {
  const std::lock_guard lock(mutex_);
  for (auto& [added, entry] : entries_) entry.request = 0;
}

void ClientCommits::tick() { ask_all(false); }

}  // namespace sluice::control
