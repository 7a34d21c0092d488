// What an initiator is asked for, and when (R2T, RFC 7143 §11.8). Three bounds hold: the memory of
// all tasks that were asked for data (kSessionMemory), that of their units on this reactor
// (write_memory.h), and what was asked for and is on its way (kMaxSolicited): a ping's answer may
// come behind all of that.
#include <algorithm>
#include <utility>

#include "base/limits.h"
#include "iscsi/session.h"

namespace sluice::iscsi {

// Hands the data over when it is complete, else asks for more.
void Session::pump_data_out(Task* task) {
  if (!task->gathering || task->unsolicited_open) return;
  if (task->received >= task->wanted) return hand_over_data(task);
  if (!task->admitted && !admit(task)) return;
  wait_for_burst(task);
  request_bursts();
}

// A task is asked for its data only when there is room for all of it: tasks that each hold a part
// and wait for the rest would wait for each other. The session's first is always let in.
bool Session::has_room(Task& task) const {
  const size_t need = task.wanted - task.solicited;
  lun::Itl& itl = *task.command.itl;
  if (turn_of_another(task)) return false;
  if (admitted_ != 0) {
    if (data_held_ + need > limits::kSessionMemory) return false;
    // A LUN that answers nothing leaves others of the session a part.
    const size_t left = limits::kSessionMemory - data_held_ - need;
    if (itl.asked_for != 0 && itl.asked_for + need > limits::kLunShare * left) return false;
  }
  return shard_.write_memory.admits(itl, need, task.held, task.refused_since);
}

// Others of the session take all that comes back of its memory, small ones, while a large one of a
// LUN that has none of it waits. So it has a turn now and then, as in write_memory.h, short enough
// that a LUN which hangs holds up the others for a little only.
bool Session::turn_of_another(const Task& task) const {
  const auto first = std::ranges::find_if(
      budget_waiters_, [](const Task* t) { return t->command.itl->asked_for == 0; });
  if (first == budget_waiters_.end() || *first == &task) return false;
  const Task& late = **first;
  const size_t both = size_t{late.wanted - late.solicited} + (task.wanted - task.solicited);
  if (data_held_ + both <= limits::kSessionMemory) return false;
  constexpr Nanos kRound = limits::kMemoryPatience + limits::kMemoryTurn;
  return (shard_.now - late.waits_since) % kRound >= limits::kMemoryPatience;
}

bool Session::admit(Task* task) {
  // Nobody overtakes another of its LUN.
  const auto same_lun = [task](const Task* t) { return t->command.itl == task->command.itl; };
  if (task->waits_for_budget || std::ranges::any_of(budget_waiters_, same_lun) ||
      !has_room(*task)) {
    wait_for_budget(task);
    return false;
  }
  let_in(task, task->wanted - task->solicited);
  return true;
}

void Session::let_in(Task* task, uint32_t bytes) {
  charge(task, bytes);
  task->promised = bytes;
  shard_.write_memory.promise(bytes);
  task->asked = bytes;
  task->command.itl->asked_for += bytes;
  task->admitted = true;
  task->admission = admissions_++;
  ++admitted_;
}

void Session::wait_for_budget(Task* task) {
  if (std::exchange(task->waits_for_budget, true)) return;
  task->waits_since = shard_.now;
  budget_waiters_.push_back(task);
  if (!std::exchange(waits_for_memory_, true)) shard_.write_memory.wait(*this);
}

void Session::resume_budget_waiters() {
  std::vector<const lun::Itl*> stay;  // LUNs with one that was not let in
  for (size_t i = 0; i < budget_waiters_.size() && !closing_;) {
    Task* task = budget_waiters_[i];
    const lun::Itl* itl = task->command.itl;
    const bool others_wait = std::ranges::find(stay, itl) != stay.end();
    if (others_wait || !has_room(*task)) {
      if (!others_wait) stay.push_back(itl);
      ++i;
      continue;
    }
    budget_waiters_.erase(budget_waiters_.begin() + static_cast<ptrdiff_t>(i));
    task->waits_for_budget = false;
    let_in(task, task->wanted - task->solicited);
    pump_data_out(task);
  }
  if (!budget_waiters_.empty() || !std::exchange(waits_for_memory_, false)) return;
  shard_.write_memory.leave(*this);
}

// The length of the task's next burst; 0 when it may have none.
uint32_t Session::next_burst(const Task& task) const {
  if (task.bursts == parameters_.max_outstanding_r2t) return 0;
  return std::min({parameters_.max_burst_length, limits::kMaxSolicited,
                   task.wanted - std::min(task.wanted, task.solicited)});
}

// Who was admitted first is asked first, as long as it has anything to be asked for: writes end one
// after the other rather than all at the end.
void Session::wait_for_burst(Task* task) {
  if (task->waits_for_burst || next_burst(*task) == 0) return;
  task->waits_for_burst = true;
  const auto earlier = [](const Task* a, const Task* b) { return a->admission < b->admission; };
  burst_waiters_.insert(std::ranges::upper_bound(burst_waiters_, task, earlier), task);
}

void Session::stop_asking(Task* task) {
  if (std::exchange(task->waits_for_burst, false)) std::erase(burst_waiters_, task);
}

// Asks for all that there is room for. Nobody overtakes the first, however small its burst: what is
// outstanding becomes less with all that comes, and no burst is longer than kMaxSolicited.
void Session::request_bursts() {
  while (!burst_waiters_.empty() && !closing_) {
    Task* task = burst_waiters_.front();
    if (next_burst(*task) > limits::kMaxSolicited - outstanding_) return;
    request_burst(task);
    if (next_burst(*task) == 0) stop_asking(task);
  }
}

void Session::request_burst(Task* task) {
  const uint32_t length = next_burst(*task);
  if (next_transfer_tag_ == pdu::kReservedTag) next_transfer_tag_ = 1;
  const Burst burst{next_transfer_tag_++, task->solicited, length};
  if (task->bursts == 0) task->data_sn = task->in_burst = 0;
  task->burst[task->bursts++] = burst;
  task->solicited += length;
  task->outstanding += length;
  outstanding_ += length;

  pdu::Bhs& h = writer_.start(pdu::Opcode::kR2t);
  h.set_flags(pdu::kFlagFinal);
  h.set_lun(task->command.lun_field);
  h.set_itt(task->itt);
  h.set_target_transfer_tag(burst.transfer_tag);
  stamp(h, false);
  h.put32(36, task->r2t_sn++);
  h.put32(40, burst.offset);
  h.put32(44, burst.length);
  writer_.finish();
  host_.output_ready();
}

// Bytes that an R2T asked for are no longer on their way. An initiator may send more than that.
void Session::came(Task* task, uint32_t bytes) {
  bytes = std::min(bytes, task->outstanding);
  task->outstanding -= bytes;
  outstanding_ -= bytes;
}

// Not at once: whatever ended a task before its data came may be about to end the others, too.
void Session::ask_others_later() {
  if (closing_ || (budget_waiters_.empty() && burst_waiters_.empty())) return;
  if (std::exchange(asks_later_, true)) return;
  const auto ask = [self = std::weak_ptr<Session*>(self_)] {
    const auto alive = self.lock();
    if (!alive) return;
    (*alive)->asks_later_ = false;
    (*alive)->resume_budget_waiters();
    (*alive)->request_bursts();
  };
  shard_.lane.reactors->post(shard_.lane.reactor, ask);
}

}  // namespace sluice::iscsi
