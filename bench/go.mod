module github.com/handwerk-dev/handwerk/bench

go 1.26.0

replace github.com/handwerk-dev/handwerk => ../
