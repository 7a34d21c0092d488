#include "config/config.h"

#include <tuple>

namespace sluice::config {
namespace {

auto fields(const backend::Spec& spec) {
  const auto& [kind, path, size, block_size, direct, write_cache, read_only, create, ceph,
               reopen_after_fence] = spec;
  return std::tie(kind, path, size, block_size, direct, write_cache, read_only, create, ceph,
                  reopen_after_fence);
}

auto fields(const iscsi::Offer& offer) {
  const auto& [segment, burst, first_burst, r2t, initial_r2t, immediate, wait, retain, header, data,
               level] = offer;
  return std::tie(segment, burst, first_burst, r2t, initial_r2t, immediate, wait, retain, header,
                  data, level);
}

}  // namespace

bool same(const backend::Spec& a, const backend::Spec& b) { return fields(a) == fields(b); }
bool same(const iscsi::Offer& a, const iscsi::Offer& b) { return fields(a) == fields(b); }

}  // namespace sluice::config
