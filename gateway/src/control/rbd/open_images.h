// The images of a pool that this gateway has open: volumes have some, jobs have others. A job that
// has a volume's image open stops when the volume needs to close it.
//
// Threads: any.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

namespace sluice::rbd {
class RadosClient;
class ServedImage;
}  // namespace sluice::rbd

namespace sluice::control {

// The storage of a volume, as far as the pool and its jobs use it.
class ImageHolder {
 public:
  virtual ~ImageHolder() = default;
  virtual void wake() = 0;
  // Null: not open.
  virtual std::shared_ptr<rbd::ServedImage> image() const = 0;
  virtual bool leaving() const = 0;  // it closes the image, which is not closed yet
  // The client is blocklisted.
  virtual void fence(const rbd::RadosClient& client) = 0;
};

class OpenImages {
 public:
  void add(const std::string& location, std::weak_ptr<ImageHolder> holder);
  // The image at `location` that this gateway serves; null: it does not.
  std::shared_ptr<rbd::ServedImage> served(const std::string& location) const;
  void wake_holders() const;
  // Every image that is open by this client is fenced.
  void fence(const rbd::RadosClient& client) const;

  // Registers that a job has the image at `location` open, until destruction.
  class Use {
   public:
    Use(std::shared_ptr<OpenImages> images, std::string location);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    bool stopped() const { return *stopped_; }  // the image is needed elsewhere

   private:
    const std::shared_ptr<OpenImages> images_;
    const std::string location_;
    const std::shared_ptr<std::atomic<bool>> stopped_;
  };
  void stop_uses(const std::string& location);
  bool is_used(const std::string& location) const;

 private:
  // Null: of all locations.
  std::vector<std::shared_ptr<ImageHolder>> holders(const std::string* location = nullptr) const;

  mutable std::mutex mutex_;
  std::multimap<std::string, std::weak_ptr<ImageHolder>> holders_;       // by location
  std::multimap<std::string, std::shared_ptr<std::atomic<bool>>> uses_;  // by location
};

}  // namespace sluice::control
