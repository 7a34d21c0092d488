#include "commands/command_context.h"

#include <utility>

#include "unit/unit.h"

namespace sluice::lun {
namespace {

// What every borrower of a unit's memory refers to.
struct Loan final : Buffer {
  std::shared_ptr<Unit> unit;
  std::shared_ptr<backend::Backend> backend;
};

BufferRef lend(std::shared_ptr<Unit> unit, std::shared_ptr<backend::Backend> backend) {
  auto loan = std::make_unique<Loan>();
  loan->unit = std::move(unit);
  loan->backend = std::move(backend);
  loan->returned = [](Buffer& b) { std::default_delete<Loan>()(static_cast<Loan*>(&b)); };
  return BufferRef(loan.release());
}

}  // namespace

CommandContext::CommandContext(std::shared_ptr<Unit> unit, NexusContext& nexus, uint64_t lun)
    : unit_(std::move(unit)), context_(nexus), lun_(lun), loan_(lend(unit_, nullptr)) {}

const BufferRef& CommandContext::backend_loan() {
  if (!backend_loan_ || lender_ != &unit_->backend()) [[unlikely]] {
    lender_ = &unit_->backend();
    backend_loan_ = lend(unit_, unit_->shared_backend());
  }
  return backend_loan_;
}

void CommandContext::drop_nexus(const char* why) {
  if (!context_.closed() && context_.drop) context_.drop(why);
}

void CommandContext::leave_held() {
  --held;
  --context_.held;
  unit_->unhold();
}

}  // namespace sluice::lun
