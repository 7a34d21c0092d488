#include "iscsi/task.h"

#include <bit>

namespace sluice::iscsi {

void Task::receive(const pdu::Bhs& header) {
  enter(State::kReceived);
  r2t_ = R2t::kNone;
  itt = header.itt();
  cmd_sn = header.cmd_sn();
  expected_length = header.expected_data_length();
  const uint8_t flags = header.flags();
  const bool read = flags & pdu::kFlagRead;
  const bool write = flags & pdu::kFlagWrite;
  expects = read ? (write ? Expects::kBoth : Expects::kDataIn)
                 : (write ? Expects::kDataOut : Expects::kNoData);
  slot = header.immediate() ? Slot::kImmediate : Slot::kWindow;
  fail_asc = fail_ascq = 0;
  unsolicited_data =
      write && !(flags & pdu::kFlagFinal) ? Unsolicited::kAnnounced : Unsolicited::kComplete;
  unsolicited = received = solicited = data_sn = r2t_sn = 0;
  in_burst = charged = held = asked = outstanding = 0;
  reserved = 0;
  refused_since = 0;
  payer = nullptr;
  bursts = 0;
  wanted = write ? expected_length : 0;
  long_cdb.clear();
}

bool Task::may_follow(State to) const {
  switch (to) {
    case State::kFree:
      return state_ != State::kFree;
    case State::kReceived:
      return state_ == State::kFree;
    case State::kExecuting:
      return state_ == State::kReceived || state_ == State::kNeedsData || state_ == State::kFailing;
    case State::kNeedsData:
      return state_ == State::kExecuting;
    case State::kFailing:
      return state_ == State::kNeedsData;
    case State::kAborting:
      return state_ == State::kExecuting || state_ == State::kNeedsData ||
             state_ == State::kFailing;
    case State::kDetached:
      return state_ == State::kExecuting || state_ == State::kAborting;
    case State::kAnswered:  // from kReceived: refused before it was passed to the nexus
      return state_ == State::kReceived || state_ == State::kExecuting ||
             state_ == State::kNeedsData;
  }
  return false;
}

bool Task::may_follow(R2t to) const {
  switch (to) {
    case R2t::kNone:
      return r2t_ != R2t::kWaitsForR2t;
    case R2t::kWaitsMemory:
      return r2t_ == R2t::kNone;
    case R2t::kAdmitted:
      return r2t_ != R2t::kAdmitted;
    case R2t::kWaitsForR2t:
      return r2t_ == R2t::kAdmitted;
  }
  return false;
}

void TaskQueue::push(Task* task) {
  assert(task->next == nullptr);
  (head_ ? tail_->next : head_) = task;
  tail_ = task;
}

bool TaskQueue::remove(Task* task) {
  Task* previous = nullptr;
  for (Task* t = head_; t; previous = t, t = t->next) {
    if (t != task) continue;
    (previous ? previous->next : head_) = t->next;
    if (tail_ == t) tail_ = previous;
    t->next = nullptr;
    return true;
  }
  return false;
}

Task* TaskPool::take() {
  if (!free_) {
    if (made_ >= limit_) return nullptr;
    blocks_.push_back(std::make_unique<Task[]>(kBlock));
    for (uint32_t i = kBlock; i-- > 0;) {
      blocks_.back()[i].next = free_;
      free_ = &blocks_.back()[i];
    }
    made_ += kBlock;
  }
  Task* task = free_;
  free_ = task->next;
  task->next = nullptr;
  ++in_use_;
  assert(task->state() == Task::State::kFree);
  return task;
}

void TaskPool::give_back(Task* task) {
  assert(task->state() == Task::State::kFree);
  task->next = free_;
  free_ = task;
  --in_use_;
}

TaskTable::TaskTable(uint32_t max_tasks) {
  const uint32_t capacity = std::bit_ceil(max_tasks * 2 + 1);
  slots_.assign(capacity, nullptr);
  mask_ = capacity - 1;
  shift_ = 32 - static_cast<uint32_t>(std::countr_zero(capacity));
}

Task* TaskTable::find(uint32_t itt) const {
  for (uint32_t i = home(itt);; i = (i + 1) & mask_) {
    Task* t = slots_[i];
    if (!t || t->itt == itt) return t;
  }
}

void TaskTable::insert(Task* task) {
  uint32_t i = home(task->itt);
  while (slots_[i]) i = (i + 1) & mask_;
  slots_[i] = task;
}

void TaskTable::erase(const Task* task) {
  uint32_t hole = home(task->itt);
  while (slots_[hole] != task) hole = (hole + 1) & mask_;
  // Moves back every follower that would become unreachable.
  for (uint32_t i = (hole + 1) & mask_; slots_[i]; i = (i + 1) & mask_) {
    const uint32_t h = home(slots_[i]->itt);
    const bool reachable = hole < i ? (h > hole && h <= i) : (h > hole || h <= i);
    if (reachable) continue;
    slots_[hole] = slots_[i];
    hole = i;
  }
  slots_[hole] = nullptr;
}

}  // namespace sluice::iscsi
