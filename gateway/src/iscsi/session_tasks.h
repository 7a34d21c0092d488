// The tasks of a session by initiator task tag, from the command PDU to the end, and the numbers of
// the command window that they occupy.
//
// Threads: one reactor.
#pragma once

#include <cassert>
#include <cstdint>
#include <utility>

#include "base/limits.h"
#include "iscsi/command_window.h"
#include "iscsi/task.h"

namespace sluice::iscsi {

class SessionTasks {
 public:
  // `immediate_limit`: maximum number of immediate tasks.
  SessionTasks(CommandWindow& window, uint32_t immediate_limit)
      : window_(window),
        immediate_limit_(immediate_limit),
        pool_(window.size() + limits::kMaxImmediateCommands),
        table_(2 * window.size() + limits::kMaxImmediateCommands) {}

  Task* find(uint32_t itt) const { return table_.find(itt); }
  template <class F>
  void for_each(F&& f) const {
    table_.for_each(std::forward<F>(f));
  }
  uint32_t in_use() const { return pool_.in_use(); }
  bool immediate_full() const { return immediate_ >= immediate_limit_; }
  uint32_t window_size() const { return window_.size(); }
  bool may_set_aside() const { return set_aside_ < window_.size(); }

  // A task for a new command; nullptr: there are too many. Then insert() or give_back().
  Task* take() { return pool_.take(); }
  // The task is in State::kReceived, and its number counts as received.
  void insert(Task* task) {
    if (task->slot == Task::Slot::kImmediate) ++immediate_;
    table_.insert(task);
  }
  // The response of the task frees its number, so that the response itself can announce that.
  void release_number(Task* task) {
    if (task->slot != Task::Slot::kWindow) return;
    window_.release();
    task->slot = Task::Slot::kImmediate;
    ++immediate_;
  }
  // Frees the number of a task of a stuck unit: the initiator may send one more command. At most
  // as many tasks as the window has numbers, so a session has two windows of tasks at most.
  void set_aside(Task* task) {
    assert(task->slot == Task::Slot::kWindow && may_set_aside());
    window_.release();
    task->slot = Task::Slot::kSetAside;
    ++set_aside_;
    pool_.exempt();
  }
  // The task ends: frees its tag and its slot.
  void remove(Task* task) {
    table_.erase(task);
    switch (task->slot) {
      case Task::Slot::kWindow:
        window_.release();
        break;
      case Task::Slot::kImmediate:
        assert(immediate_ != 0);
        --immediate_;
        break;
      case Task::Slot::kSetAside:
        assert(set_aside_ != 0);
        --set_aside_;
        pool_.count_again();
        break;
    }
  }
  // The initiator may use its tag and its number again, although the backend still has the command.
  // The device bounds the number of such tasks (limits::kMaxInFlightPerUnit, kMaxStuckRequests).
  void detach(Task* task) {
    task->enter(Task::State::kDetached);
    remove(task);
    pool_.exempt();
  }
  void give_back(Task* task) {
    if (task->state() == Task::State::kDetached) pool_.count_again();
    task->enter(Task::State::kFree);
    pool_.give_back(task);
  }

 private:
  CommandWindow& window_;
  const uint32_t immediate_limit_;
  uint32_t immediate_ = 0;  // number of tasks in Slot::kImmediate
  uint32_t set_aside_ = 0;  // number of tasks in Slot::kSetAside
  TaskPool pool_;
  TaskTable table_;
};

}  // namespace sluice::iscsi
