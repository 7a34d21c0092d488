// Operations in a list linked by AioOp::next, first in, first out. It owns none of them.
#pragma once

#include "base/aio.h"

namespace sluice {

class AioList {
 public:
  bool empty() const { return first_ == nullptr; }
  const AioOp* front() const { return first_; }
  void push(AioOp& op) {
    op.next = nullptr;
    (first_ != nullptr ? last_->next : first_) = &op;
    last_ = &op;
  }
  AioOp* pop() {
    AioOp* op = first_;
    if (op != nullptr) first_ = op->next;
    return op;
  }

 private:
  AioOp* first_ = nullptr;
  AioOp* last_ = nullptr;  // undefined if empty
};

}  // namespace sluice
