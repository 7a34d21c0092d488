#include "simulation/held_backend.h"

namespace sluice::simulation {

bool HeldBackend::submit(backend::Io& io, Aio& aio) {
  if (!holding_) return inner_->submit(io, aio);
  queue_.push_back({&io, &aio});
  return false;
}

bool HeldBackend::release_one(int error) {
  if (queue_.empty()) return false;
  const Waiting next = queue_.front();
  queue_.pop_front();
  if (error != 0) {
    next.io->result = error;
    next.io->done(*next.io);
  } else if (inner_->submit(*next.io, *next.aio)) {
    next.io->done(*next.io);
  }
  return true;
}

}  // namespace sluice::simulation
