#include "commands/copies/copy_records.h"

#include <algorithm>

namespace sluice::lun {

CopyRecord* CopyRecords::find(const Unit& unit, bool token_operation, uint32_t list_id) {
  for (const auto& r : records_) {
    if (r->unit == &unit && r->token_operation == token_operation && r->list_id == list_id) {
      return r.get();
    }
  }
  return nullptr;
}

CopyRecord* CopyRecords::start(const Unit& unit, bool token_operation, uint32_t list_id,
                               bool* in_use) {
  const CopyRecord* old = find(unit, token_operation, list_id);
  *in_use = old && old->running;
  if (*in_use) return nullptr;
  if (old) forget(old);
  if (records_.size() >= limits::kMaxCopyRecords) {
    const auto oldest =
        std::find_if(records_.begin(), records_.end(), [](const auto& r) { return !r->running; });
    if (oldest == records_.end()) return nullptr;
    records_.erase(oldest);
  }
  records_.push_back(std::make_unique<CopyRecord>());
  CopyRecord* record = records_.back().get();
  record->unit = &unit;
  record->token_operation = token_operation;
  record->list_id = list_id;
  return record;
}

void CopyRecords::forget(const CopyRecord* record) {
  std::erase_if(records_, [&](const auto& r) { return r.get() == record; });
}

}  // namespace sluice::lun
