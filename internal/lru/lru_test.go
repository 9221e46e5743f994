package lru

import (
	"fmt"
	"testing"
)

func TestEviction(t *testing.T) {
	c := New[int](3)
	for i := range 6 {
		c.Set(fmt.Sprint(i), i)
		c.Get("0")
	}
	for key, want := range map[string]bool{"0": true, "1": false, "3": false, "4": true, "5": true} {
		if _, ok := c.Get(key); ok != want {
			t.Errorf("%s: %v", key, ok)
		}
	}
	if c.byUse.Len() != 3 {
		t.Errorf("%d values", c.byUse.Len())
	}
	if got := c.Add("4", 40); got != 4 {
		t.Errorf("Add replaced it: %d", got)
	}
	if c.Set("4", 40); c.Add("4", 4) != 40 {
		t.Error("Set did not replace it")
	}
	if c.Flush(); c.byUse.Len() != 0 {
		t.Error("Flush left something")
	}
}

func TestSizeLimit(t *testing.T) {
	c := NewSized(8, func(s string) int { return len(s) })
	c.Set("a", "1234")
	c.Set("b", "1234")
	c.Set("c", "1")
	if _, ok := c.Get("a"); ok || c.byUse.Len() != 2 {
		t.Errorf("%d values", c.byUse.Len())
	}
	if c.Set("d", "123456789"); c.Len() != 2 || c.Size() != 5 || c.Add("d", "123456789") != "123456789" {
		t.Errorf("%d values of %d bytes with one that is too large", c.Len(), c.Size())
	}
	if c.Set("c", "123456789"); c.Size() != 0 {
		t.Errorf("%d bytes with a value that has grown too large", c.Size())
	}
	c.Set("d", "1")
	c.Set("e", "22")
	if c.Size() != 3 {
		t.Errorf("%d bytes held", c.Size())
	}
	if c.SetLimit(2); c.Size() != 2 || c.Len() != 1 {
		t.Errorf("%d bytes held with another limit", c.Size())
	}
}
