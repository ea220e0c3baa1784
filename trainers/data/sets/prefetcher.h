// Loads items in advance.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace hvdlite::trainers {

// Calls load(0) to load(count - 1), at most kDepthPerWorker * workers of them
// in advance, and returns the results in order. So the results do not depend on
// the number of workers. With 0 workers the caller loads.
template <typename Item>
class Prefetcher {
 public:
  // With more than one worker, several threads call `load` at the same time.
  Prefetcher(int64_t count, int workers, std::function<Item(int64_t)> load)
      : count_(count),
        depth_(int64_t{kDepthPerWorker} * workers),
        load_(std::move(load)) {
    try {
      for (int i = 0; i < workers; ++i) {
        workers_.emplace_back([this] { Work(); });
      }
    } catch (...) {  // no more threads available
      Stop();
      throw;
    }
  }

  // Does not wait for items that no worker has begun.
  ~Prefetcher() { Stop(); }

  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;

  // Returns the next item, or throws the exception of load() or std::bad_alloc.
  // One thread may call it `count` times.
  Item Next() {
    if (workers_.empty()) return load_(taken_++);
    return TakeLoaded().get();
  }

 private:
  static constexpr int kDepthPerWorker = 2;

  void Stop() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    for (std::thread& worker : workers_) worker.join();
  }

  std::future<Item> TakeLoaded() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return loaded_.contains(taken_) || failure_ != nullptr;
    });
    if (!loaded_.contains(taken_)) std::rethrow_exception(failure_);
    auto item = loaded_.extract(taken_++);
    lock.unlock();
    changed_.notify_all();
    return std::move(item.mapped());
  }

  void Work() noexcept {
    try {
      while (const auto index = Begin()) {
        std::future<Item> item = Load(*index);
        {
          const std::lock_guard lock(mutex_);
          loaded_.emplace(*index, std::move(item));
        }
        changed_.notify_all();
      }
    } catch (...) {  // out of memory
      {
        const std::lock_guard lock(mutex_);
        failure_ = std::current_exception();
      }
      changed_.notify_all();
    }
  }

  // Returns the result or the exception; this thread keeps no reference to it.
  std::future<Item> Load(int64_t index) const {
    std::packaged_task<Item()> task([&] { return load_(index); });
    task();
    return task.get_future();
  }

  // Waits until an item may be loaded; returns nothing if no item remains.
  std::optional<int64_t> Begin() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return stopping_ || begun_ == count_ || begun_ < taken_ + depth_;
    });
    if (stopping_ || begun_ == count_) return std::nullopt;
    return begun_++;
  }

  const int64_t count_;
  const int64_t depth_;
  const std::function<Item(int64_t)> load_;

  std::mutex mutex_;
  std::condition_variable changed_;  // signals changes of the members below
  int64_t begun_ = 0;                // number of items that workers have begun
  int64_t taken_ = 0;
  bool stopping_ = false;
  std::map<int64_t, std::future<Item>> loaded_;
  std::exception_ptr failure_;  // of a worker, which ended with it

  std::vector<std::thread> workers_;
};

}  // namespace hvdlite::trainers
