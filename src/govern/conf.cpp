// SPDX-License-Identifier: GPL-2.0-or-later
#include "govern/conf.h"

#include <algorithm>
#include <cctype>
#include <sstream>

namespace gpuq::govern {

std::vector<ConfLine> lines_of(std::string_view conf)
{
    std::vector<ConfLine> lines;
    std::istringstream stream{std::string(conf)};
    int number = 0;
    for (std::string text; std::getline(stream, text);) {
        ++number;
        const std::size_t end = std::min(text.find('#'), text.size());
        std::string comment = text.substr(std::min(end + 1, text.size()));
        text.erase(end);
        std::istringstream words(text);
        std::string word;
        if (!(words >> word)) {
            continue;
        }
        const auto sign = word.find('=');
        std::string value = sign == std::string::npos ? "" : word.substr(sign + 1);
        if (sign == std::string::npos) {
            words >> value; // `include FILE`
        }
        std::string key = word.substr(0, sign);
        std::transform(key.begin(), key.end(), key.begin(),
                       [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
        lines.push_back({number, std::move(key), std::move(value), text, std::move(comment)});
    }
    return lines;
}

} // namespace gpuq::govern
