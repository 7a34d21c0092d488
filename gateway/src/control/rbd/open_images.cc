#include "control_rbd/open_images.h"

#include <utility>

namespace sluice::control {

void OpenImages::add(const std::string& location, std::weak_ptr<ImageHolder> holder) {
  const std::lock_guard lock(mutex_);
  std::erase_if(holders_, [](const auto& entry) { return entry.second.expired(); });
  holders_.emplace(location, std::move(holder));
}

std::vector<std::shared_ptr<ImageHolder>> OpenImages::holders(const std::string* location) const {
  std::vector<std::shared_ptr<ImageHolder>> all;
  const std::lock_guard lock(mutex_);
  const auto range =
      location ? holders_.equal_range(*location) : std::pair(holders_.begin(), holders_.end());
  for (auto at = range.first; at != range.second; ++at) {
    if (auto holder = at->second.lock()) all.push_back(std::move(holder));
  }
  return all;
}

std::shared_ptr<rbd::ServedImage> OpenImages::served(const std::string& location) const {
  for (const auto& holder : holders(&location)) {
    if (auto image = holder->image()) return image;
  }
  return nullptr;
}

void OpenImages::wake_holders() const {
  for (const auto& holder : holders()) holder->wake();
}

void OpenImages::fence(const rbd::RadosClient& client) const {
  for (const auto& holder : holders()) holder->fence(client);
}

OpenImages::Use::Use(std::shared_ptr<OpenImages> images, std::string location)
    : images_(std::move(images)),
      location_(std::move(location)),
      stopped_(std::make_shared<std::atomic<bool>>(false)) {
  {
    const std::lock_guard lock(images_->mutex_);
    images_->uses_.emplace(location_, stopped_);
  }
  // A storage that starts to release the image later stops this use, too.
  for (const auto& holder : images_->holders(&location_)) {
    if (holder->leaving()) *stopped_ = true;
  }
}

OpenImages::Use::~Use() {
  {
    const std::lock_guard lock(images_->mutex_);
    std::erase_if(images_->uses_, [&](const auto& entry) { return entry.second == stopped_; });
  }
  for (const auto& holder : images_->holders(&location_)) holder->wake();
}

void OpenImages::stop_uses(const std::string& location) {
  const std::lock_guard lock(mutex_);
  const auto range = uses_.equal_range(location);
  for (auto at = range.first; at != range.second; ++at) *at->second = true;
}

bool OpenImages::is_used(const std::string& location) const {
  const std::lock_guard lock(mutex_);
  return uses_.contains(location);
}

}  // namespace sluice::control
