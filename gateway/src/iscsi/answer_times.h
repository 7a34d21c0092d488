// How many commands of a session were answered, and how long they took, for the load of its host.
// The time ends with the batch that answers, when the answers are passed to the sockets: one clock
// reading serves all.
//
// Threads: one reactor.
#pragma once

#include <cstdint>
#include <vector>

#include "base/clock.h"

namespace sluice::iscsi {

class AnswerTimes;

// The sessions that answered commands in a reactor's current batch.
class AnswerLog {
 public:
  void add(AnswerTimes* session) { sessions_.push_back(session); }
  void remove(AnswerTimes* session) { std::erase(sessions_, session); }
  // The batch ended, and took `batch`.
  inline void settle(Nanos batch);

 private:
  std::vector<AnswerTimes*> sessions_;
};

class AnswerTimes {
 public:
  explicit AnswerTimes(AnswerLog& log) : log_(log) {}
  ~AnswerTimes() {
    if (in_batch_ != 0) log_.remove(this);
  }
  AnswerTimes(const AnswerTimes&) = delete;
  AnswerTimes& operator=(const AnswerTimes&) = delete;

  // A command that arrived at `arrived` is answered in the batch that began at `now`.
  void add(Nanos arrived, Nanos now) {
    ++count_;
    time_ += now - arrived;
    if (in_batch_++ == 0) log_.add(this);
  }
  uint64_t count() const { return count_; }
  // Sum of the times of the commands, from arrival to response.
  Nanos time() const { return time_; }

 private:
  friend class AnswerLog;
  AnswerLog& log_;
  uint64_t count_ = 0;
  Nanos time_ = 0;
  uint32_t in_batch_ = 0;  // answered in the current batch: their time lasts until its end
};

inline void AnswerLog::settle(Nanos batch) {
  for (AnswerTimes* session : sessions_) {
    session->time_ += batch * session->in_batch_;
    session->in_batch_ = 0;
  }
  sessions_.clear();
}

}  // namespace sluice::iscsi
