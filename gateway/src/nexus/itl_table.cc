#include "nexus/itl_table.h"

#include <algorithm>

namespace sluice::lun {
namespace {

bool lower(const std::pair<uint64_t, std::shared_ptr<Itl>>& entry, uint64_t lun) {
  return entry.first < lun;
}

}  // namespace

void ItlTable::add(std::shared_ptr<Itl> itl) {
  const uint64_t lun = itl->lun();
  if (lun < low_.size()) {
    low_[lun] = std::move(itl);
    return;
  }
  const auto at = std::lower_bound(high_.begin(), high_.end(), lun, lower);
  high_.insert(at, {lun, std::move(itl)});
}

Itl* ItlTable::find_high(uint64_t lun) const {
  const auto at = std::lower_bound(high_.begin(), high_.end(), lun, lower);
  return at != high_.end() && at->first == lun ? at->second.get() : nullptr;
}

std::vector<Itl*> ItlTable::all() const {
  std::vector<Itl*> all;
  for (const auto& itl : low_) {
    if (itl) all.push_back(itl.get());
  }
  for (const auto& [lun, itl] : high_) all.push_back(itl.get());
  return all;
}

void ItlTable::remove_unless(const std::function<bool(Itl&)>& stays,
                             const std::function<void(const std::shared_ptr<Itl>&)>& removed) {
  for (auto& itl : low_) {
    if (itl && !stays(*itl)) removed(std::exchange(itl, nullptr));
  }
  std::erase_if(high_, [&](const auto& entry) {
    if (stays(*entry.second)) return false;
    removed(entry.second);
    return true;
  });
}

void ItlTable::clear() {
  for (auto& itl : low_) itl.reset();
  high_.clear();
}

}  // namespace sluice::lun
