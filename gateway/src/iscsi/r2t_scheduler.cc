#include "iscsi/r2t_scheduler.h"

#include <algorithm>
#include <cassert>
#include <utility>

#include "base/limits.h"
#include "base/safety_mutation.h"

namespace sluice::iscsi {

R2tScheduler::R2tScheduler(const SessionContext& session, SessionWriter& writer,
                           TransferTags& transfer_tags)
    : session_(session),
      shard_(session.shard),
      parameters_(session.parameters),
      nexus_(session.nexus.get()),
      writer_(writer),
      transfer_tags_(transfer_tags) {}

R2tScheduler::~R2tScheduler() {
  if (in_quota_queue_) shard_.write_quota.leave(*this);
}

void R2tScheduler::continue_task(Task* task) {
  if (task->state() != Task::State::kNeedsData || task->announces_data()) return;
  if (task->received >= task->wanted) return pass_data(task);
  if (!task->admitted() && !try_admit(task)) return;
  wait_for_r2t(task);
  request_bursts();
}

// The first admitted task of the session needs no room within kSessionMemory: no task is larger.
bool R2tScheduler::has_room(Task& task) const {
  const size_t need = task.wanted - task.solicited;
  lun::CommandContext& itl = *task.command.itl;
  if (slice_of_another(task)) return false;
  if (admitted_ != 0) {
    if (charged_ + need > limits::kSessionMemory) return false;
    // A LUN that completes nothing leaves a part to the other LUNs of the session.
    const size_t left = limits::kSessionMemory - charged_ - need;
    if (mutation_disables(Guard::kWriteShare)) return true;
    if (itl.asked_for != 0 && itl.asked_for + need > limits::kLunShare * left) return false;
  }
  return shard_.write_quota.admits(itl, need, task.held, task.refused_since);
}

// Without time slices a large task of a LUN that has no memory would starve while small tasks of
// other LUNs take all memory that comes back. The slices are short, because its LUN may hang
// (WriteBufferQuota does the same for units).
bool R2tScheduler::slice_of_another(const Task& task) const {
  const auto first =
      std::ranges::find_if(waiting_, [](const Task* t) { return t->command.itl->asked_for == 0; });
  if (first == waiting_.end() || *first == &task) return false;
  const Task& late = **first;
  const size_t both = size_t{late.wanted - late.solicited} + (task.wanted - task.solicited);
  if (charged_ + both <= limits::kSessionMemory) return false;
  constexpr Nanos kRound = limits::kMemoryPatience + limits::kMemorySlice;
  return (shard_.now - late.waits_since) % kRound >= limits::kMemoryPatience;
}

bool R2tScheduler::try_admit(Task* task) {
  // Tasks of one LUN are admitted in their order.
  const auto same_lun = [task](const Task* t) { return t->command.itl == task->command.itl; };
  if (task->r2t() == Task::R2t::kWaitsMemory || std::ranges::any_of(waiting_, same_lun) ||
      !has_room(*task)) {
    wait_for_memory(task);
    return false;
  }
  admit(task, task->wanted - task->solicited);
  return true;
}

void R2tScheduler::admit(Task* task, uint32_t bytes) {
  charge(task, bytes);
  task->reserved = bytes;
  shard_.write_quota.reserve(bytes);
  task->asked = bytes;
  task->command.itl->asked_for += bytes;
  task->enter(Task::R2t::kAdmitted);
  task->admission = admissions_++;
  ++admitted_;
}

void R2tScheduler::wait_for_memory(Task* task) {
  if (task->r2t() == Task::R2t::kWaitsMemory) return;
  task->enter(Task::R2t::kWaitsMemory);
  task->waits_since = shard_.now;
  waiting_.push_back(task);
  if (!std::exchange(in_quota_queue_, true)) shard_.write_quota.wait(*this);
}

void R2tScheduler::memory_came_back() {
  std::vector<const lun::CommandContext*>
      refused;  // LUNs whose first waiting task was not admitted
  for (size_t i = 0; i < waiting_.size() && !session_.closing();) {
    Task* task = waiting_[i];
    const lun::CommandContext* itl = task->command.itl;
    const bool behind = std::ranges::find(refused, itl) != refused.end();
    if (behind || !has_room(*task)) {
      if (!behind) refused.push_back(itl);
      ++i;
      continue;
    }
    waiting_.erase(waiting_.begin() + static_cast<ptrdiff_t>(i));
    admit(task, task->wanted - task->solicited);
    continue_task(task);
  }
  if (!waiting_.empty() || !std::exchange(in_quota_queue_, false)) return;
  shard_.write_quota.leave(*this);
}

// The length of the task's next burst; 0 if it may have none.
uint32_t R2tScheduler::next_burst(const Task& task) const {
  if (task.bursts == parameters_.max_outstanding_r2t) return 0;
  return std::min({parameters_.max_burst_length, limits::kMaxSolicited,
                   task.wanted - std::min(task.wanted, task.solicited)});
}

// The task that was admitted first is asked first, as long as it needs data. So writes complete one
// after the other, and not all at the end.
void R2tScheduler::wait_for_r2t(Task* task) {
  if (task->r2t() == Task::R2t::kWaitsForR2t || next_burst(*task) == 0) return;
  assert(task->r2t() == Task::R2t::kAdmitted);
  task->enter(Task::R2t::kWaitsForR2t);
  const auto earlier = [](const Task* a, const Task* b) { return a->admission < b->admission; };
  waiting_for_r2t_.insert(std::ranges::upper_bound(waiting_for_r2t_, task, earlier), task);
}

void R2tScheduler::stop_requesting(Task* task) {
  if (task->r2t() != Task::R2t::kWaitsForR2t) return;
  task->enter(Task::R2t::kAdmitted);
  std::erase(waiting_for_r2t_, task);
}

// No task overtakes the first, however small its burst is. The first gets its slice: all bytes that
// come make the outstanding ones less, and no burst is longer than kMaxSolicited.
void R2tScheduler::request_bursts() {
  while (!waiting_for_r2t_.empty() && !session_.closing()) {
    Task* task = waiting_for_r2t_.front();
    if (next_burst(*task) > limits::kMaxSolicited - outstanding_) return;
    request_burst(task);
    if (next_burst(*task) == 0) stop_requesting(task);
  }
}

void R2tScheduler::request_burst(Task* task) {
  const uint32_t length = next_burst(*task);
  const uint32_t offset = task->solicited;
  if (task->bursts == 0) task->data_sn = task->in_burst = 0;
  task->burst[task->bursts++] = {send_r2t(*task, offset, length), offset, length};
  task->solicited += length;
  task->outstanding += length;
  outstanding_ += length;
}

uint32_t R2tScheduler::send_r2t(Task& task, uint32_t offset, uint32_t length) {
  const uint32_t transfer_tag = transfer_tags_.next();
  pdu::Bhs& h = writer_.start(pdu::Opcode::kR2t);
  h.set_flags(pdu::kFlagFinal);
  h.set_lun(task.command.lun_field);
  h.set_itt(task.itt);
  h.set_target_transfer_tag(transfer_tag);
  writer_.stamp(h);
  h.put32(36, task.r2t_sn++);
  h.put32(40, offset);
  h.put32(44, length);
  writer_.finish();
  writer_.output_ready();
  return transfer_tag;
}

// All data that the task needs has arrived.
void R2tScheduler::pass_data(Task* task) {
  lun::Command& c = task->command;
  task->enter(Task::State::kExecuting);
  c.data_out_size = std::min(task->received, task->wanted);
  // The initiator may have sent more unsolicited data than the CDB names.
  uint32_t left = c.data_out_size;
  size_t remaining = 0;
  for (Slice& piece : c.data_out) {
    if (left == 0) break;
    piece.size = std::min(piece.size, left);
    left -= piece.size;
    ++remaining;
  }
  c.data_out.resize(remaining);
  nexus_->data_ready(c);
}

void R2tScheduler::on_solicited_bytes(Task* task, uint32_t bytes) {
  bytes = std::min(bytes, task->outstanding);
  task->outstanding -= bytes;
  outstanding_ -= bytes;
}

void R2tScheduler::charge(Task* task, uint32_t bytes) {
  task->charged += bytes;
  charged_ += bytes;
  if (task->begun()) hold_for_unit(task, task->command.itl, bytes);
}

void R2tScheduler::consume(Task* task, uint32_t bytes) {
  const uint32_t kept = std::min(task->reserved, bytes);
  task->reserved -= kept;
  shard_.write_quota.consume(kept);
}

void R2tScheduler::hold_for_unit(Task* task, lun::CommandContext* itl, uint32_t bytes) {
  task->payer = itl;
  task->held += bytes;
  shard_.write_quota.hold(*itl, bytes);
}

void R2tScheduler::release_for_unit(Task* task) {
  if (!task->payer) return;
  lun::CommandContext& itl = *std::exchange(task->payer, nullptr);
  itl.asked_for -= std::exchange(task->asked, 0);
  shard_.write_quota.release(itl, std::exchange(task->held, 0), std::exchange(task->reserved, 0));
}

bool R2tScheduler::end(Task* task) {
  charged_ -= std::exchange(task->charged, 0);
  const bool waits_for_r2t = task->r2t() == Task::R2t::kWaitsForR2t;
  const bool cut_off = task->command.aborted() || task->outstanding != 0 || waits_for_r2t;
  if (task->admitted()) --admitted_;
  if (task->r2t() == Task::R2t::kWaitsMemory) std::erase(waiting_, task);
  stop_requesting(task);
  on_solicited_bytes(task, task->outstanding);
  task->enter(Task::R2t::kNone);
  return cut_off;
}

void R2tScheduler::admit_others(bool cut_off) {
  if (cut_off) return schedule_r2t();
  if (!waiting_.empty()) memory_came_back();
}

void R2tScheduler::schedule_r2t() {
  if (session_.closing() || (waiting_.empty() && waiting_for_r2t_.empty())) return;
  if (std::exchange(scheduled_, true)) return;
  const auto ask = [self = std::weak_ptr<R2tScheduler*>(self_)] {
    const auto alive = self.lock();
    if (!alive) return;
    (*alive)->scheduled_ = false;
    (*alive)->memory_came_back();
    (*alive)->request_bursts();
  };
  shard_.context.reactors->post(shard_.context.reactor, ask);
}

}  // namespace sluice::iscsi
