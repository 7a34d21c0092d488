// Asks a backend what may make it wait for its medium.
#include <memory>
#include <utility>

#include "commands/handler.h"

namespace sluice::lun {
namespace {

struct Query {
  AioOp op;
  std::shared_ptr<backend::Backend> backend;
  std::function<void(const backend::Backend&)> ask;
  std::function<void()> answer;
};

Query& query_of(AioOp& op) { return *static_cast<Query*>(op.context); }

void answer(AioOp& op, int32_t /*result*/) {
  const std::unique_ptr<Query> query(&query_of(op));
  query->answer();
}

}  // namespace

void ask_medium(Unit& unit, Command& command, std::function<void(const backend::Backend&)> ask,
                std::function<void()> answered) {
  auto query = std::make_unique<Query>();
  query->backend = unit.shared_backend();
  query->ask = std::move(ask);
  query->answer = std::move(answered);
  query->op.context = query.get();
  query->op.call = [](AioOp& op) { query_of(op).ask(*query_of(op).backend); };
  query->op.done = answer;
  backend::Backend& backend = *query->backend;
  Aio& aio = *command.nexus->reactor_context().aio;
  // answer() owns it from here on.
  AioOp& op = query.release()->op;
  if (backend.run_query(op, aio)) answer(op, 0);
}

}  // namespace sluice::lun
