#include "iscsi/task.h"

#include <bit>

namespace sluice::iscsi {

void TaskQueue::push(Task* task) {
  assert(task->next == nullptr);
  (head_ ? tail_->next : head_) = task;
  tail_ = task;
}

void TaskQueue::pop() {
  Task* first = head_;
  head_ = first->next;
  if (!head_) tail_ = nullptr;
  first->next = nullptr;
}

void TaskQueue::remove(Task* task) {
  Task* previous = nullptr;
  for (Task* t = head_; t; previous = t, t = t->next) {
    if (t != task) continue;
    (previous ? previous->next : head_) = t->next;
    if (tail_ == t) tail_ = previous;
    t->next = nullptr;
    return;
  }
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
  return task;
}

void TaskPool::give_back(Task* task) {
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
